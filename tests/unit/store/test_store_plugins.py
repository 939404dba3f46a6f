"""Stores of distributions: found by the scheme of an address, and alone in what is wrong with them."""

from pathlib import Path

import numpy as np
import pytest
from plugin_distributions import write_distribution
from sqlalchemy.exc import OperationalError

from edgeflare.errors import StoreAwayError, StoreError, UsageError
from edgeflare.store import SeedInput, Store, servers
from edgeflare.store.database import translate_errors
from edgeflare.store.location import POINTER_NAME, Location, write_pointer
from edgeflare.store.servers import add_database

SOURCE = """
from pathlib import Path

from edgeflare.store.samples import SampleFiles


class Mounted(SampleFiles):
    def __init__(self, url):
        super().__init__(Path(__file__).parent / url.partition("://")[2])
        self.place = url
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


def test_samples_are_where_a_distributions_scheme_says(tmp_path: Path, site: Path) -> None:
    write_distribution(
        site, "mounted_store", SOURCE, {"edgeflare.stores/mounted": "Mounted"}, "mounted-store"
    )
    sample = np.ones((2, 2, 1), np.uint8)
    with Store.create(tmp_path / "c", {}, samples="mounted://disk") as store:
        (digest,) = store.add_seeds([SeedInput("a", sample)])
    assert len(list((site / "disk").glob("c-*/??/*.npy"))) == 1
    with Store.open(tmp_path / "c") as store:
        assert np.array_equal(store.get_sample(digest), sample)


def test_a_broken_store_fails_alone_with_one_sentence(tmp_path: Path, site: Path) -> None:
    entries = {"edgeflare.stores/torn": "Torn"}
    write_distribution(site, "torn_store", "import nothing_of_this_name", entries, "torn-store")
    with pytest.raises(UsageError, match=r"torn-store 1\.2"):
        Store.create(tmp_path / "c", {}, samples="torn://disk")
    Store.create(tmp_path / "c", {}).close()


@pytest.mark.parametrize(
    ("there", "words"), [(None, "postgresql://"), (object(), "database server")]
)
def test_a_database_of_no_or_another_distribution(
    monkeypatch: pytest.MonkeyPatch, there: object, words: str
) -> None:
    monkeypatch.setattr(servers, "load", lambda kind, scheme: there)
    add_database("postgresql://u@h/d")
    with pytest.raises(UsageError, match=words):
        servers.server_of(Location("campaign", "postgresql://u@h/d", "c"))


def test_a_servers_error_is_known_without_a_pointer_and_a_broken_store(
    tmp_path: Path, site: Path
) -> None:
    psycopg = pytest.importorskip("psycopg")
    write_distribution(
        site,
        "torn_too",
        "import nothing_of_this_name",
        {"edgeflare.stores/a-torn": "Torn"},
        "torn-too",
    )
    refused = psycopg.OperationalError("connection refused")
    for pointer in (None, "no JSON"):
        if pointer:
            (tmp_path / POINTER_NAME).write_text(pointer)
        with pytest.raises(StoreAwayError, match="be reached"), translate_errors(tmp_path):
            raise OperationalError("SELECT 1", None, refused)


def test_an_error_of_a_database_whose_store_is_broken_is_still_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(kind: str, scheme: str) -> object:
        raise UsageError(f"the {kind} {scheme} is broken")

    monkeypatch.setattr(servers, "load", broken)
    write_pointer(tmp_path, Location("campaign", "postgresql://u@h/d", "c"))
    with pytest.raises(StoreError, match="gone for"), translate_errors(tmp_path):
        raise OperationalError("SELECT 1", None, Exception("gone for good"))
