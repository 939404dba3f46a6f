"""The board's Python libraries: this machine's versions, or the newest wheels for arm64."""

import sys
from pathlib import Path

import pytest

from edgeflare_lab.virtual.rootfs import (
    LIBRARIES_FOLDER,
    host_versions,
    put_wheels,
    wheel_platforms,
    without_wheels,
)
from edgeflare_lab.virtual.tools import BuildLog, ToolError

PIP = """
import pathlib, sys
words = sys.argv[1:]
wanted = dict(word.partition("==")[::2] for word in words[-3:])
for name, version in wanted.items():
    if version in {lacking!r}:
        print(f"ERROR: No matching distribution found for {{name}}=={{version}}")
        sys.exit(1)
target = pathlib.Path(words[words.index("--target") + 1])
for name, version in wanted.items():
    info = target / f"{{name}}-{{version or 'newest'}}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {{name}}\\nVersion: {{version or '9.9'}}\\n")
"""


def pip(tmp_path: Path, *lacking: str) -> list[str]:
    """A pip that knows no wheel of these versions."""
    script = tmp_path / "pip.py"
    script.write_text(PIP.format(lacking=lacking))
    return [sys.executable, str(script)]


def test_the_tags_are_those_of_bookworm() -> None:
    tags = wheel_platforms()
    assert tags[0] == "manylinux_2_36_aarch64"
    assert {"manylinux_2_17_aarch64", "manylinux_2_28_aarch64", "manylinux2014_aarch64"} <= set(
        tags
    )
    assert "manylinux_2_37_aarch64" not in tags


def test_this_machine_s_versions_are_wanted() -> None:
    import numpy as np
    import onnxruntime

    versions = host_versions()
    assert versions["numpy"] == np.__version__
    assert versions["onnxruntime"] == onnxruntime.__version__


def test_a_version_without_a_wheel_is_given_up_and_the_others_stay(tmp_path: Path) -> None:
    wanted = {"numpy": "2.9", "onnxruntime": "1.31", "ai-edge-litert": "2.3"}
    found = put_wheels(pip(tmp_path, "2.9"), tmp_path, wanted, BuildLog(tmp_path / "log"))
    assert found == {"numpy": "9.9", "onnxruntime": "1.31", "ai-edge-litert": "2.3"}
    assert (tmp_path / LIBRARIES_FOLDER).is_dir()
    assert wanted["numpy"] == "2.9"


def test_what_pip_says_is_kept_and_told_where_nothing_helps(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import sys; print('no route to the index'); sys.exit(2)")
    log = BuildLog(tmp_path / "log")
    with pytest.raises(ToolError, match="no route") as caught:
        put_wheels([sys.executable, str(script)], tmp_path, {"numpy": "2.4"}, log)
    assert str(log.path) in str(caught.value)
    assert "route to the" in log.path.read_text()


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("ERROR: No matching distribution found for ai_edge_litert==2.3.0", ["ai-edge-litert"]),
        ("ERROR: ResolutionImpossible: for help visit", ["ai-edge-litert", "numpy"]),
        ("ERROR: No matching distribution found for flatbuffers==1", None),
        ("Connection refused", None),
    ],
)
def test_pip_s_reasons_are_distinguished(output: str, names: list[str] | None) -> None:
    assert without_wheels(output, {"ai-edge-litert": "2.3.0", "numpy": "2.4"}) == names
