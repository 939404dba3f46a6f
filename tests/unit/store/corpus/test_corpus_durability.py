"""Nothing acknowledged is lost from a trigger corpus: kill -9, a full disk, a read-only disk."""

import shutil
import subprocess

import pytest
from corpus_records import FORM, add, digest, picture, trigger_record
from programs import lines_before_kill

from edgeflare.errors import DiskFullError, StoreError
from edgeflare.store import Store
from edgeflare.store.corpus.corpus import Corpus

CHANGE_FOR_EVER = """
import sys
from datetime import timedelta
from pathlib import Path

from corpus_records import START, add, device_answer, trigger_record

from edgeflare.store.corpus.corpus import Corpus

with Corpus.open(Path(sys.argv[1]), create=True) as corpus:
    for number in range(1000):
        values = range(10 * number, 10 * number + 10)
        some = [trigger_record(value, seed=number, l2=1 / (1 + value)) for value in values]
        add(corpus, *some, values=[*values, 1000 + number])
        print("added", number, flush=True)
        later = START + timedelta(days=300)
        corpus.add_answers([device_answer(values[-1], deviated=False, at=later)])
        print("noted", number, flush=True)
        if number % 5 == 4:
            corpus.remove(fixed_for=0)
            print("removed", number, flush=True)
"""


ALSO = pytest.mark.extended


@pytest.mark.parametrize(
    "reports", [1, pytest.param(4, marks=ALSO), 9, pytest.param(11, marks=ALSO), 30]
)
def test_what_was_acknowledged_before_kill_9_is_there_and_no_entry_is_half(tmp_path, reports):
    lines = lines_before_kill(CHANGE_FOR_EVER, tmp_path / "c", reports)
    told = [(word, int(number)) for word, number in lines]
    last = dict(told)
    with Corpus.open(tmp_path / "c") as corpus:
        entries = {entry.sample: entry for entry in corpus.entries()}
        agreeing = {answer.sample for answer in corpus.answers() if not answer.deviated}
        gone = 0
        for number in range(last["added"] + 1):
            # of ten that come ever nearer, the first, the nearest and one more stay
            kept = [
                value for value in range(10 * number, 10 * number + 10) if digest(value) in entries
            ]
            nearest = 10 * number + 9
            if nearest not in kept:
                gone += 1
                assert number <= last.get("removed", -1) + 5
                assert len(kept) == 2
                continue
            assert len(kept) == 3
            assert 10 * number in kept
            assert number > last.get("removed", -1)
            if number <= last.get("noted", -1):
                assert digest(nearest) in agreeing
        assert gone in (last.get("removed", -1) + 1, last.get("removed", -1) + 6)
        answers = list(corpus.answers())
        assert {answer.sample for answer in answers} == set(entries)
        assert set(corpus.sightings()) == set(entries)
        for entry in entries.values():
            corpus.get_sample(entry.sample)
            corpus.get_sample(entry.seed_sample)
        fresh = trigger_record(9_999, pair=(1, 2))
        assert add(corpus, fresh, values=[9_999, 1000]).new == 1
        corpus.remove(pair=(1, 2))
        used = {one for entry in entries.values() for one in (entry.sample, entry.seed_sample)}
        assert {path.stem for path in corpus.folder.glob("samples/*/*.npy")} == used


def test_a_full_disk_keeps_what_the_corpus_had(small_disk):
    added = []

    def add_for_ever(corpus):
        for number in range(10_000):
            some = trigger_record(number, seed=number, seed_id="x" * 600)
            assert add(corpus, some, values=[number, 1000 + number]).new == 1
            added.append(digest(number))

    with (
        Corpus.open(small_disk / "c", create=True) as corpus,
        pytest.raises(DiskFullError, match="corpus had"),
    ):
        add_for_ever(corpus)
    assert len(added) > 10
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    with Corpus.open(small_disk / "c") as corpus:
        assert {entry.sample for entry in corpus.entries()} == set(added)
        assert sum(1 for _ in corpus.inputs()) == len(added)
        assert add(corpus, trigger_record(20_000), values=[20_000, 1000]).new == 1


def test_a_disk_too_small_for_a_corpus_says_so_and_it_can_be_made_later(small_disk):
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (1020 << 10))
    with pytest.raises(DiskFullError, match="nothing could"):
        Corpus.open(small_disk / "c", create=True)
    filler.unlink()
    with Corpus.open(small_disk / "c", create=True) as corpus:
        assert len(corpus) == 0


@pytest.mark.slow  # nearly sixty small databases, each made on a disk of its own fill
def test_where_the_disk_ends_while_a_corpus_or_campaign_is_made_it_can_be_made_later(small_disk):
    filler = small_disk / "filler"
    made = {"corpus": 0, "campaign": 0}
    refused: dict[str, list[str]] = {name: [] for name in made}
    openers = {
        "corpus": lambda folder: Corpus.open(folder, create=True),
        "campaign": lambda folder: Store.create(folder, {}),
    }
    for free in range(8, 240, 8):  # kB
        for name, make in openers.items():
            folder = small_disk / f"{name}{free}"
            used = sum(path.stat().st_blocks * 512 for path in small_disk.rglob("*"))
            filler.write_bytes(b"x" * max(0, (1 << 20) - used - (free << 10)))
            try:
                make(folder).close()
            except DiskFullError as error:
                refused[name].append(str(error))
            else:
                made[name] += 1
            filler.unlink()
            again = Store.open if (folder / "campaign.sqlite").exists() else make
            again(folder).close()
            shutil.rmtree(folder)
    for name, count in made.items():
        assert count > 0
        assert len(refused[name]) > 0
        assert not [one for one in refused[name] if "edgeflare resume" in one]


def test_a_corpus_on_a_read_only_disk_is_replayed_but_not_changed(small_disk):
    with Corpus.open(small_disk / "c", create=True) as corpus:
        add(corpus, trigger_record(1))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with Corpus.open(small_disk / "c") as corpus:
        assert [(corpus.get_sample(one.sample) == picture(1)).all() for one in corpus.inputs()] == [
            True
        ]
        assert corpus.form == FORM
        with pytest.raises(StoreError, match=r"Read-only|writable"):
            add(corpus, trigger_record(2))
