"""Where the board's packages come from: the mirror that apt means, or the one that is given."""

import shutil

import pytest

from edgeflare.errors import DeviceError
from edgeflare_lab.virtual import packages as mirror
from edgeflare_lab.virtual.machine import BoardSettings
from edgeflare_lab.virtual.packages import debian_of, find_mirror

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
def test_apt_reads_its_own_sources(file, text, tmp_path, monkeypatch) -> None:
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
    assert find_mirror(BoardSettings(keyring=keyring)) == ("http://one.test/debian", keyring)


def test_without_keys_the_user_is_asked_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "_KEYRINGS", ())
    with pytest.raises(DeviceError, match=r"debian-archive-keyring.*--keyring"):
        find_mirror(BoardSettings(mirror="http://one.test/debian"))
