"""A campaign whose samples are in a shared folder or in an object store."""

import json
from pathlib import Path

import numpy as np
import pytest

from edgeflare.errors import StoreError, UsageError
from edgeflare.store import SeedInput, Store
from edgeflare.store.creation import remove_folder
from edgeflare.store.samples import SampleFiles, open_samples

PLACES = ["folder", "memory", pytest.param("s3", marks=pytest.mark.extended)]
SEED = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "shared")
    found: str = request.getfixturevalue(f"{request.param}_place")
    return found


def test_a_campaign_finds_its_samples_again(tmp_path: Path, place: str) -> None:
    with Store.create(tmp_path / "c", {}, samples=place) as store:
        (digest,) = store.add_seeds([SeedInput("a", SEED)])
        where = str(store.samples_place)
        assert where.startswith(f"{place}/c-")
    pointer = {"kind": "campaign", "url": "", "name": "c", "samples": where}
    assert json.loads((tmp_path / "c" / "store.json").read_text()) == pointer
    assert not (tmp_path / "c" / "samples").exists()
    store = Store.open(tmp_path / "c")
    assert store.has_sample(digest)
    assert np.array_equal(store.get_sample(digest), SEED)
    assert np.array_equal(store.seed_samples()[0], SEED)
    store.discard()
    assert list(open_samples(where).sizes()) == []


def test_campaigns_of_one_name_share_no_samples(tmp_path: Path, place: str) -> None:
    with (
        Store.create(tmp_path / "1" / "c", {}, samples=place) as first,
        Store.create(tmp_path / "2" / "c", {}, samples=place) as second,
    ):
        digest = first.put_sample(SEED)
        assert not second.has_sample(digest)
        second.put_sample(SEED)
        second.discard()
        assert np.array_equal(first.get_sample(digest), SEED)
    assert not (tmp_path / "2" / "c").exists()


@pytest.mark.parametrize("name", ["documents", "samples", "c-1234567", "x-0123456g", "c-0a1b2c3d"])
def test_what_is_no_sample_is_never_removed(tmp_path: Path, name: str) -> None:
    place = tmp_path / "elsewhere" / name
    mine = place / "ab" / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    samples = SampleFiles(place)
    digest = samples.put(SEED)
    (place / "cd").symlink_to(samples.path(digest).parent, target_is_directory=True)
    with Store.create(tmp_path / "c", {}):
        pointer = {"kind": "campaign", "url": "", "name": "c", "samples": str(place)}
    (tmp_path / "c" / "store.json").write_text(json.dumps(pointer))
    remove_folder(tmp_path / "c")
    assert mine.read_text() == "mine"
    assert samples.exists(digest) == (name != "c-0a1b2c3d")


def test_a_control_has_a_place_below_its_campaign(tmp_path: Path, place: str) -> None:
    with (
        Store.create(tmp_path / "c", {}, samples=place) as store,
        Store.create(tmp_path / "c" / "control", {}, samples=place) as control,
    ):
        assert str(control.samples_place).startswith(f"{place}/c/control-")
        control.put_sample(SEED)
        assert not store.has_sample(store.sample_digest(SEED))


def test_a_place_that_can_not_be_used_leaves_no_campaign(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (str(tmp_path / "file"), "nowhere://x"):
        with pytest.raises((StoreError, UsageError), match="can't be"):
            Store.create(tmp_path / "c", {}, samples=place)
        with Store.create(tmp_path / "c", {}) as store:
            store.discard()
