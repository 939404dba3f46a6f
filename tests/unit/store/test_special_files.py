"""Special files, links and texts in a campaign's folder: none is waited for, followed out, or written to."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from stored_json import change

from edgeflare._internal.files import file_sha256, read_regular
from edgeflare.campaign.api import SearchResult
from edgeflare.campaign.batch import read_description, write_description
from edgeflare.campaign.status import LIVE_NAME, campaign_status, first_status, write_status
from edgeflare.errors import StoreError
from edgeflare.store import CampaignLock, Store
from edgeflare.store.corpus.corpus import Corpus

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no special files")


def fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def link_out(path: Path) -> None:
    outside = path.parent.parent.parent / f"outside-{path.name}"
    if path.exists():
        path.rename(outside)
    else:
        outside.write_text("precious")
    path.symlink_to(outside)


def server(path: Path) -> None:
    path.unlink(missing_ok=True)
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


SPECIAL: dict[str, Callable[[Path], None]] = {
    one.__name__: one for one in (fifo, endless, folder, link_out, server)
}


@pytest.fixture
def home(sqlite_store: Store) -> Iterator[Path]:
    """The folder of a campaign with a status, closed."""
    write_status(first_status(sqlite_store.folder))
    sqlite_store.close()
    return sqlite_store.folder


def listing(home: Path) -> set[tuple[str, int]]:
    return {(str(path), path.lstat().st_size) for path in home.rglob("*")}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize(
    "name",
    ["campaign.sqlite", "campaign.sqlite-wal", "campaign.sqlite-journal", "store.json", LIVE_NAME],
)
def test_a_special_file_is_refused_and_nothing_is_written(home: Path, name: str, kind: str) -> None:
    SPECIAL[kind](home / name)
    before = listing(home.parent)
    with pytest.raises(StoreError, match=name):
        campaign_status(home)
    assert listing(home.parent) == before


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("name", ["campaign.lock", "corpus.lock"])
def test_a_special_file_is_no_lock(home: Path, name: str, kind: str) -> None:
    SPECIAL[kind](home / name)
    with pytest.raises(StoreError):
        CampaignLock(home).acquire() if name == "campaign.lock" else Corpus.open(home, create=True)
    if kind == "link_out":
        assert (home.parent.parent / f"outside-{name}").read_text() == "precious"


@pytest.mark.parametrize("kind", ["fifo", "server"])
def test_a_campaign_with_a_special_file_is_not_copied(
    home: Path, tmp_path: Path, kind: str
) -> None:
    SPECIAL[kind](home / "extra")
    with pytest.raises(StoreError, match="regular file"):
        SearchResult(home).save(tmp_path / "copy")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_campaign_with_a_folder_that_cannot_be_read_is_not_copied(
    home: Path, tmp_path: Path
) -> None:
    (home / "extra").mkdir(mode=0)
    with pytest.raises(StoreError, match=r"copied: .*Permission"):
        SearchResult(home).save(tmp_path / "copy")


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_sample_is_a_regular_file_in_its_folder(home: Path, kind: str) -> None:
    with Store.open(home) as store:
        (digest,) = store.seed_samples().digests
        path = home / "samples" / digest[:2] / f"{digest}.npy"
        SPECIAL[kind](path)
        with pytest.raises(StoreError, match=digest):
            store.get_sample(digest)
    with pytest.raises(OSError, match=path.name):
        read_regular(path, inside=home / "samples")
    if kind != "link_out":  # a model's file may be a link
        with pytest.raises(OSError, match=path.name):
            file_sha256(path)


@pytest.mark.parametrize(
    "digest", ["", "../" * 9 + "etc/passwd", "A" * 64, "0" * 63 + "\n", "0" * 65]
)
def test_a_digest_is_no_path(home: Path, digest: str) -> None:
    with Store.open(home) as store:
        for use in (store.get_sample, store.has_sample):
            with pytest.raises(StoreError, match="the digest"):
                use(digest)


def test_links_that_stay_inside_are_followed(home: Path) -> None:
    with Store.open(home) as store:
        (digest,) = store.seed_samples().digests
    path = home / "samples" / digest[:2] / f"{digest}.npy"
    path.rename(home / "samples" / "kept.npy")
    path.symlink_to("../kept.npy")
    (home / "samples").rename(home.parent / "large disk")
    (home / "samples").symlink_to("../large disk")  # the samples' folder is on another disk
    (home.parent / "again").symlink_to(home)
    with Store.open(home.parent / "again") as store:
        assert store.get_sample(digest).shape == (2, 2, 1)


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(OSError, match="up to"):
        read_regular(path)
    write_description(tmp_path / "small.json", {"a": 1})
    assert read_description(tmp_path / "small.json")["a"] == 1
    path.rename(tmp_path / "store.json")
    with pytest.raises(StoreError, match=r"store\.json"):
        Store.open(tmp_path)


def test_an_empty_or_missing_database_beside_samples_is_damage(home: Path) -> None:
    (home / "campaign.sqlite").write_bytes(b"")
    before = listing(home)
    with pytest.raises(StoreError, match="is empty") as error:
        Store.open(home)
    assert "delete" not in str(error.value)
    assert listing(home) == before
    (home / "campaign.sqlite").unlink()
    with pytest.raises(StoreError, match="is missing"):
        Store.open(home)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_programs_database_stays_as_it_is(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "campaign.sqlite"
    change(path, f"PRAGMA journal_mode={mode}")
    change(path, "CREATE TABLE recipes (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program's"):
        Store.open(tmp_path)
    assert (list(tmp_path.iterdir()), path.read_bytes()) == ([path], before)


def test_a_copy_without_a_write_ahead_log_is_opened(home: Path) -> None:
    """As SQLite's own tools restore a database."""
    change(home / "campaign.sqlite", "PRAGMA journal_mode=delete")
    with Store.open(home) as store:
        assert np.array_equal(store.seed_samples()[0], np.zeros((2, 2, 1)))
