"""A trigger corpus: what it keeps, what it says when replayed, what it lets go."""

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from corpus_records import DAY, FORM, START, add, device_answer, digest, picture, trigger_record
from programs import holding
from stored_json import change

from edgeflare.errors import StoreError, UsageError
from edgeflare.store import Store
from edgeflare.store.corpus import base
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.corpus.records import Added, Form
from edgeflare.store.location import is_corpus

HOLD = """
import sys
from pathlib import Path

from edgeflare.store.corpus.base import exclusive_lock

with exclusive_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def corpus(tmp_path, database):
    with Corpus.open(tmp_path / "corpus", create=True, database=database) as made:
        yield made


def values(corpus):
    """The pictures that are entries, in the order they came."""
    known = {digest(value): value for value in range(100)}
    return [known[entry.sample] for entry in corpus.entries()]


def inputs(corpus, target=None):
    """Whether each entry deviated when last looked at, by its picture, in the order they are given."""
    return {
        int(corpus.get_sample(one.sample).ravel()[0]): one.deviated for one in corpus.inputs(target)
    }


def files(corpus):
    return {path.stem for path in corpus.folder.glob("samples/*/*.npy")}


def test_an_entry_comes_back_as_it_was_found(corpus):
    found = trigger_record(7, deployed_margin=None, seed_label=None)
    assert add(corpus, found) == Added(new=1, replaced=0, known=0, near=0)
    entry = next(corpus.entries())
    assert {name: getattr(entry, name) for name in vars(found)} == vars(found)
    assert (corpus.get_sample(entry.sample) == picture(7)).all()
    assert (corpus.get_sample(entry.seed_sample) == picture(1000)).all()
    assert corpus.form == FORM


def test_the_same_bytes_are_there_once_and_every_sighting_is_counted_once(corpus):
    first, again = trigger_record(1), trigger_record(1, campaign="e" * 32, found_at=START + 9 * DAY)
    add(corpus, first)
    assert add(corpus, again) == Added(new=0, replaced=0, known=1, near=0)
    assert add(corpus, first, again) == Added(new=0, replaced=0, known=2, near=0)
    assert corpus.sightings() == {digest(1): 2}
    assert next(corpus.entries()).campaign == "c" * 32


def test_a_corpus_keeps_how_many_a_pair_may_have(tmp_path):
    with Corpus.open(tmp_path / "c", create=True, per_pair=1) as corpus:
        add(corpus, trigger_record(1), trigger_record(2, l2=0.1))
        assert values(corpus) == [1]
    with Corpus.open(tmp_path / "c", create=True) as corpus:
        assert corpus.per_pair == 1
    with Corpus.open(tmp_path / "c", per_pair=2) as corpus:
        add(corpus, trigger_record(2, l2=0.1))
        assert values(corpus) == [1, 2]
        with pytest.raises(UsageError, match="more"):
            corpus.set_per_pair(0)


@pytest.mark.parametrize("form", [Form((2, 2, 3), 10), Form((2, 2, 1), 100)])
def test_another_shape_or_number_of_classes_is_refused(corpus, form):
    add(corpus, trigger_record(1))
    with pytest.raises(UsageError, match="10 classes"):
        corpus.add([trigger_record(2)], form, lambda _: picture(2))
    assert values(corpus) == [1]


def test_what_was_fixed_and_comes_back_is_seen_from_the_last_look(corpus):
    add(corpus, trigger_record(1), trigger_record(2, seed=1))
    assert inputs(corpus) == {1: True, 2: True}
    assert corpus.add_answers([device_answer(1, deviated=False, at=START + DAY)]) == 1
    assert inputs(corpus) == {2: True, 1: False}
    assert list(inputs(corpus)) == [2, 1]
    corpus.add_answers([device_answer(1, deviated=True, at=START + 2 * DAY)])
    assert inputs(corpus) == {1: True, 2: True}
    corpus.add_answers([device_answer(1, deviated=False, at=START + DAY)])
    assert inputs(corpus) == {1: True, 2: True}


def test_a_target_is_held_to_its_own_looks_and_a_fresh_one_to_what_was_found(corpus):
    add(corpus, trigger_record(1))
    corpus.add_answers([device_answer(1, deviated=False, at=START + DAY, device="jetson")])
    assert inputs(corpus, "int8/pi") == {1: True}
    assert inputs(corpus, "int8/jetson") == {1: False}
    assert inputs(corpus, "fp16/pi") == {1: True}
    assert inputs(corpus) == {1: False}
    given = next(corpus.inputs())
    assert {name: one.deviated for name, one in given.looks.items()} == {
        "pi": True,
        "jetson": False,
    }
    assert (given.original_label, given.deployed_label, given.l2) == (4, 4, 1.0)
    assert next(corpus.inputs("int8/pi")).looks == {}


def test_inputs_are_named_alike_in_every_replay(corpus):
    add(corpus, trigger_record(1), trigger_record(2, seed=1))
    names = {one.id: int(corpus.get_sample(one.sample).ravel()[0]) for one in corpus.inputs()}
    assert names == {"000001/s/0.png": 1, "000002/s/1.png": 2}
    corpus.remove(pair=(4, 9))
    add(corpus, trigger_record(1))
    assert [one.id for one in corpus.inputs()] == ["000003/s/0.png"]


def test_the_device_that_said_so_last_comes_last(corpus):
    add(corpus, trigger_record(1))
    for days, device, model in ((1, "jetson", "int8"), (2, "pi", "fp16")):
        about = {"device": device, "model": model, "at": START + days * DAY}
        corpus.add_answers([device_answer(1, deviated=days == 2, **about)])
    (one,) = corpus.inputs()
    seen = [(name, look.deviated) for name, look in one.looks.items()]
    assert seen == [("jetson", False), ("pi", True)]


def test_a_model_goes_but_what_another_showed_too_stays(corpus):
    shown = [trigger_record(1), trigger_record(2, seed=1)]
    add(corpus, *shown, replace(shown[0], model="fp16"))
    dry = corpus.remove(model="int8", dry_run=True)
    assert (dry.entries, dry.samples, dry.kept) == (1, 2, 1)
    assert values(corpus) == [1, 2]
    assert corpus.remove(model="int8") == dry
    assert values(corpus) == [1]
    assert corpus.models() == {"fp16": 1}
    assert {one.target for one in corpus.answers()} == {"fp16/pi"}
    assert files(corpus) == {digest(1), digest(1000)}


def test_a_pair_goes_and_with_it_the_files_nobody_refers_to(corpus):
    add(corpus, trigger_record(1), trigger_record(2, pair=(9, 4)))
    stray = corpus.folder / "samples" / digest(50)[:2] / f"{digest(50)}.npy"
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"put, and then its process was killed")
    other = stray.with_name("a user's own.npy")
    other.touch()
    removed = corpus.remove(pair=(4, 9))
    assert (removed.entries, removed.samples) == (1, 2)
    assert removed.bytes > 36
    assert files(corpus) == {digest(2), digest(1000), other.stem}


def test_fixed_for_days_looks_at_all_devices_and_at_every_model(corpus):
    add(corpus, *(trigger_record(n, seed=n) for n in range(1, 6)))
    at = START + DAY
    corpus.add_answers(device_answer(n, deviated=False, at=at) for n in (1, 2, 3, 4))
    # 2 deviates on another device; 3 came back and was fixed later; 4 is fixed in another model, too
    corpus.add_answers([device_answer(2, deviated=True, at=at + DAY, device="jetson")])
    corpus.add_answers(
        [device_answer(3, deviated=on, at=at + n * DAY) for n, on in ((4, True), (6, False))]
    )
    corpus.add_answers([device_answer(4, deviated=False, at=at + 9 * DAY, model="fp16")])
    now = at + 10 * DAY
    for days, going in ((11, []), (10, [1, 4]), (4, [1, 3, 4])):
        would = corpus.remove(fixed_for=days, now=now, dry_run=True)
        assert would.entries == len(going), days
    corpus.remove(fixed_for=4, now=now)
    assert values(corpus) == [2, 5]


def test_what_an_older_model_deviated_on_is_fixed_once_a_newer_one_agrees(corpus):
    add(corpus, trigger_record(1, model="build-1"))
    for number in range(2, 6):
        at = START + number * DAY
        corpus.add_answers([device_answer(1, deviated=False, at=at, model=f"build-{number}")])
    assert corpus.remove(fixed_for=3, now=START + 5 * DAY).entries == 1


def test_exactly_one_thing_is_removed_at_a_time(corpus):
    for given in ({}, {"model": "int8", "pair": (4, 9)}):
        with pytest.raises(UsageError, match="the three"):
            corpus.remove(**given)
    with pytest.raises(UsageError, match="more"):
        corpus.remove(fixed_for=-1)


@pytest.mark.parametrize("there", ["nothing", "a file", "an empty folder", "other files"])
def test_a_folder_that_is_no_corpus_is_reported(tmp_path, there):
    folder = tmp_path / "c"
    if there == "a file":
        folder.touch()
    elif there != "nothing":
        folder.mkdir()
    if there == "other files":
        (folder / "notes.txt").touch()
    with pytest.raises(StoreError, match=r"no corpus folder|is not a corpus"):
        Corpus.open(folder)
    if there in ("a file", "other files"):
        with pytest.raises(StoreError, match="choose another"):
            Corpus.open(folder, create=True)
    assert not is_corpus(folder)


def test_a_corpus_of_another_format_is_reported(tmp_path):
    Corpus.open(tmp_path, create=True).close()
    for version, advice in ((-1, "make it from its campaigns anew"), (99, "upgrade")):
        change(tmp_path / "corpus.sqlite", f"update corpus set schema_version = {version}")
        with pytest.raises(StoreError, match=advice):
            Corpus.open(tmp_path)
    (tmp_path / "corpus.sqlite").unlink()
    change(tmp_path / "corpus.sqlite", "create table theirs (x)")
    with pytest.raises(StoreError, match="another program"):
        Corpus.open(tmp_path)


def test_a_corpus_whose_making_was_killed_is_made(tmp_path):
    (tmp_path / "samples").mkdir()
    (tmp_path / "corpus.lock").touch()
    (tmp_path / "corpus.sqlite.new").write_bytes(b"half")
    with Corpus.open(tmp_path, create=True) as corpus:
        add(corpus, trigger_record(1))
    assert not list(tmp_path.glob("*.new*"))


def test_the_second_process_waits_for_the_first(corpus):
    with holding(HOLD, corpus.folder) as (holder, _):
        done = []
        waiting = threading.Thread(target=lambda: done.append(add(corpus, trigger_record(1))))
        waiting.start()
        assert len(corpus) == 0
        assert inputs(corpus) == {}
        assert not done
        holder.kill()
        waiting.join()
    assert done == [Added(1, 0, 0, 0)]


def test_the_second_process_is_told_where_the_first_goes_on(corpus, monkeypatch):
    monkeypatch.setattr(base, "_PATIENCE", 0.05)
    with holding(HOLD, corpus.folder), pytest.raises(StoreError, match="another edgeflare"):
        add(corpus, trigger_record(1))


def test_several_make_it_and_add_to_it_at_once(tmp_path):
    def add_some(first):
        with Corpus.open(tmp_path / "c", create=True) as mine:
            for value in range(first, first + 8):
                add(mine, trigger_record(value, seed=value % 4), values=[value, 1000 + value % 4])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_some, range(0, 40, 10)))
    with Corpus.open(tmp_path / "c") as corpus:
        assert len(corpus) == 12
        assert len(inputs(corpus)) == 12


def test_a_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with Corpus.open(tmp_path, create=True) as corpus:
        monkeypatch.setattr(base.FileLock, "acquire", refuse)
        with pytest.raises(StoreError, match="locks available"):
            add(corpus, trigger_record(1))


def test_a_corpus_is_distinguished_from_a_campaign(corpus):
    with pytest.raises(StoreError, match=r"trigger corpus.*`edgeflare"):
        Store.open(corpus.folder)
