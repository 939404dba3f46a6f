"""Samples are stored alike in a folder, in memory and in an S3-compatible store."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from edgeflare.errors import StoreError, UsageError
from edgeflare.store.samples import SampleFiles, Samples, absolute_place, open_samples

PLACES = ["folder", "memory", pytest.param("s3", marks=pytest.mark.extended)]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    if request.param == "folder":
        return tmp_path / "shared" / "campaign"
    found: str = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture
def samples(place: str | Path) -> Samples:
    opened = open_samples(place)
    opened.make()
    return opened


def image(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)


def test_what_is_put_is_read_back_by_any_who_open_the_place(
    samples: Samples, place: str | Path, tmp_path: Path
) -> None:
    digest = samples.put(image(1))
    assert digest == samples.digest(image(1)) == samples.put(image(1))
    assert digest == SampleFiles(tmp_path / "own").put(image(1))  # the same in every place
    samples.get(digest)[:] = 0  # what was read may be changed
    samples.remove_torn()
    for opened in (samples, open_samples(place)):
        assert opened.exists(digest)
        assert np.array_equal(opened.get(digest), image(1))
        assert opened.get(digest).dtype == np.uint8
        assert list(opened.sizes()) == [(digest, len(samples.file_of(image(1))[1]))]


def test_many_are_put_at_once(samples: Samples, place: str | Path) -> None:
    wanted = [image(seed) for seed in (*range(40), 0, 1)]
    digests = samples.put_all(wanted)
    assert len(set(digests)) == 40
    assert sorted(digest for digest, _ in samples.sizes()) == sorted(set(digests))
    other = open_samples(place)
    for digest, one in zip(digests, wanted, strict=True):
        assert np.array_equal(other.get(digest), one)
    assert samples.put_all([]) == []


def test_one_sample_is_put_by_many_threads_at_once(place: str | Path) -> None:
    begin = threading.Barrier(8)
    open_samples(place).make()

    def put(_: int) -> str:
        opened = open_samples(place)
        begin.wait()
        return opened.put(image(1))

    with ThreadPoolExecutor(8) as pool:
        (digest,) = set(pool.map(put, range(8)))
    assert [one for one, _ in open_samples(place).sizes()] == [digest]
    assert np.array_equal(open_samples(place).get(digest), image(1))


def test_audio_is_read_back_whether_or_not_its_rate_is_known(
    samples: Samples, place: str | Path
) -> None:
    audio = np.linspace(-1, 1, 50, dtype=np.float32)
    with pytest.raises(StoreError, match="rate"):
        samples.put(audio)
    samples.rate = 16000
    digest = samples.put(audio)
    for rate in (None, 16000):
        other = open_samples(place)
        other.rate = rate
        assert other.exists(digest)
        assert np.array_equal(other.get(digest), audio)
    samples.remove([digest])
    assert not open_samples(place).exists(digest)


def test_removed_samples_are_gone_and_can_be_put_again(samples: Samples) -> None:
    digests = samples.put_all([image(seed) for seed in range(4)])
    samples.remove([*digests[:3], "ab" * 32])
    assert [digest for digest, _ in samples.sizes()] == digests[3:]
    assert not samples.exists(digests[0])
    with pytest.raises(StoreError, match="missing"):
        samples.get(digests[0])
    assert samples.put(image(0)) == digests[0]
    assert np.array_equal(samples.get(digests[0]), image(0))


def test_a_discarded_place_has_no_samples(samples: Samples, place: str | Path) -> None:
    digests = samples.put_all([image(seed) for seed in range(3)])
    samples.discard()
    assert list(open_samples(place).sizes()) == []
    assert not samples.exists(digests[0])


def test_only_samples_are_discarded(memory_place: str) -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    notes = memory_place.removeprefix("memory:/") + "/notes.txt"
    files.pipe_file(notes, b"mine")
    samples = open_samples(memory_place)
    samples.put(image(1))
    samples.discard()
    assert files.cat_file(notes) == b"mine"


def test_a_sample_is_written_and_fetched_once(
    memory_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    digest = open_samples(memory_place).put(image(1))
    samples = open_samples(memory_place)
    samples.get(digest)
    kind = type(fsspec.filesystem("memory"))
    with monkeypatch.context() as patch:
        patch.setattr(kind, "cat_file", None)
        assert np.array_equal(samples.get(digest), image(1))
    monkeypatch.setattr(kind, "pipe_file", None)
    assert open_samples(memory_place).put_all([image(1), image(1)]) == [digest] * 2


def test_no_credentials_in_the_place() -> None:
    with pytest.raises(UsageError, match="AWS_SECRET_ACCESS_KEY") as refused:
        open_samples("s3://key:secret@bucket/samples")
    assert "secret@" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["nowhere://x", "file:///x", "sftp://x", "simplecache::s3://x", "s3://", "http://x/y"]
)
def test_only_object_stores_may_have_samples(url: str) -> None:
    with pytest.raises(UsageError, match=f"{url}: name"):
        open_samples(url)


@pytest.mark.parametrize("place", ["s3:/lab/x", "s3:lab", "/etc/edgeflare/s3:/lab"])
def test_a_mistyped_url_is_no_folder(place: str) -> None:
    with pytest.raises(UsageError, match="write s3://"):
        absolute_place(place)
