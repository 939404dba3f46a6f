"""The packages on the how-to pages of plug-ins, as a type checker sees them."""

import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info < (3, 11):
    pytest.skip("the documentation needs Python 3.11 or newer", allow_module_level=True)

from command import ROOT
from documentation import blocks

PAGES = sorted((ROOT / "docs" / "how-to" / "extend").glob("*.md"))


@pytest.mark.extended
def test_every_one_passes_a_strict_check_of_its_types(tmp_path: Path) -> None:
    files = [
        (tmp_path / Path(block.mark.removeprefix("file ")).name, block.text)
        for page in PAGES
        for block in blocks(page)
        if block.mark.startswith("file ") and block.language == "python"
    ]
    assert len(files) == 2 * (len(PAGES) - 1)
    for file, text in files:
        file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *(one for one, _ in files)],
        capture_output=True,
        text=True,
        cwd=ROOT,  # with the options of `mypy` there, so that its cache serves
    )
    assert done.returncode == 0, done.stdout + done.stderr
