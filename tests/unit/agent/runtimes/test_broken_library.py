from pathlib import Path

import pytest

from edgeflare_agent.errors import RuntimeMissingError
from edgeflare_agent.runtimes.base import import_library


@pytest.mark.parametrize("fault", ["ImportError('libfoo.so.1: not found')", "OSError('bad ELF')"])
def test_a_library_that_is_there_but_broken_is_reported_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    name = f"broken_runtime_{abs(hash(fault))}"
    (tmp_path / f"{name}.py").write_text(f"raise {fault}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeMissingError, match=r"can't be imported .*(libfoo|bad ELF).*pip"):
        import_library(name)
