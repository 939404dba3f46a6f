"""Where the board's packages come from: the mirror that apt means, and libraries as this machine has them or the newest wheels."""

import shutil
import sys
from pathlib import Path

import pytest

from edgeflare.errors import DeviceError
from edgeflare.virtual import packages as mirror
from edgeflare.virtual.machine import BoardSettings
from edgeflare.virtual.packages import debian_of, find_mirror
from edgeflare.virtual.rootfs import (
    LIBRARIES_FOLDER,
    host_versions,
    put_wheels,
    wheel_platforms,
    without_wheels,
)
from edgeflare.virtual.tools import BuildLog, ToolError

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
    with pytest.raises(ToolError, match="no route to the index") as caught:
        put_wheels([sys.executable, str(script)], tmp_path, {"numpy": "2.4"}, log)
    assert str(log.path) in str(caught.value)
    assert "no route to the index" in log.path.read_text()


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


UNKNOWN = "$(ORIGIN)|$(LABEL)"  # what apt leaves where the lists were not fetched yet


@pytest.mark.parametrize(
    ("targets", "url"),
    [
        (
            [
                "http://a/debian-security/|bookworm-security|main|Debian|Debian-Security",
                "http://b/elsewhere/|bookworm|main|Debian|Debian",
            ],
            "http://b/elsewhere/",
        ),
        (
            [
                "http://new/debian/|trixie|main|Debian|Debian",
                "http://b/debian/|bookworm|main|Debian|Debian",
            ],
            "http://b/debian/",
        ),
        (["http://new/debian/|trixie|main|Debian|Debian"], "http://new/debian/"),
        (
            [f"http://c/debian-security|x|main|{UNKNOWN}", f"http://c/debian|x|main|{UNKNOWN}"],
            "http://c/debian",
        ),
        (["http://d/debian/|bookworm|contrib|Debian|Debian"], None),
        (["http://e/ubuntu/|noble|main|Ubuntu|Ubuntu"], None),
        ([f"https://f/apt|stable|main|{UNKNOWN}"], None),
        ([], None),
    ],
)
def test_the_mirror_is_the_one_with_debian_itself(targets: list[str], url: str | None) -> None:
    assert debian_of(targets) == url


DEB822 = """\
Types: deb
URIs: http://one.test/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://one.test/debian-security
Suites: bookworm-security
Components: main
"""


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("debian.sources", DEB822),
        ("debian.list", "deb [arch=amd64] http://one.test/debian bookworm main contrib\n"),
    ],
)
def test_apt_reads_its_own_sources(
    file: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / file).write_text(text)
    (tmp_path / "lists").mkdir()
    configuration = tmp_path / "apt.conf"
    configuration.write_text(
        f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{parts}";\n'
        f'Dir::State::lists "{tmp_path}/lists/";\n'
    )
    keyring = tmp_path / "keys.gpg"
    keyring.touch()
    monkeypatch.setenv("APT_CONFIG", str(configuration))
    found = find_mirror(BoardSettings(keyring=keyring))
    assert found.url == "http://one.test/debian"
    assert found.sources() == (
        f"deb [arch=arm64 signed-by={keyring}] http://one.test/debian bookworm main\n"
    )


def test_without_apt_the_user_is_asked_for_a_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DeviceError, match="--mirror http"):
        find_mirror(BoardSettings())


def test_without_keys_the_user_is_asked_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "_KEYRINGS", ())
    with pytest.raises(DeviceError, match=r"debian-archive-keyring.*--keyring"):
        find_mirror(BoardSettings(mirror="http://one.test/debian"))
