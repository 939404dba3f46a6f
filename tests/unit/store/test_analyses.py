"""Results of analyses are rows, one a run, and an interrupted run goes on where it was."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass

import pytest

from edgeflare.errors import StoreError
from edgeflare.store import Store


@dataclass(frozen=True)
class Counted:
    count: int
    shares: tuple[float, ...] = ()


def test_the_newest_result_of_a_name_counts(store: Store) -> None:
    assert (store.result("mine", Counted), store.results()) == (None, [])
    assert store.add_result("mine", Counted(1)) == 1
    assert store.add_result("other", Counted(9)) == 1
    assert store.add_result("mine", Counted(2, (0.5,)), settings={"layers": ["a"]}) == 2
    assert store.result("mine", Counted) == Counted(2, (0.5,))
    assert [(one.name, one.number, one.settings) for one in store.results()] == [
        ("mine", 1, {}),
        ("other", 1, {}),
        ("mine", 2, {"layers": ["a"]}),
    ]
    assert all(one.made is not None and one.version for one in store.results())


def test_a_result_that_is_no_json_is_damage(sqlite_store: Store) -> None:
    sqlite_store.add_result("mine", Counted(1))
    file = sqlite_store.folder / "campaign.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("""UPDATE analyses SET result = '{"count":'""")
    with pytest.raises(StoreError, match="'mine'"):
        sqlite_store.result("mine", Counted)


def test_an_interrupted_run_has_what_it_finished(store: Store) -> None:
    run = store.analysis_run("mine", {"seed": 1})
    run.parts["a"] = [1, {"b": None}]
    run.parts["c"] = 1
    run.parts["c"] = 2
    del run.parts["a"]
    run.parts["a"] = 3
    assert (store.result("mine", Counted), store.results()) == (None, [])
    assert dict(store.analysis_run("mine", {"seed": 2}).parts) == {}
    store.close()
    with Store.open(store.folder) as reopened:
        again = reopened.analysis_run("mine", {"seed": 1})
        assert (again.number, dict(again.parts), len(again.parts)) == (1, {"c": 2, "a": 3}, 2)
        assert ("a" in again.parts, "b" in again.parts) == (True, False)
        reopened.analysis_run("mine", {"seed": 2}).finish(Counted(4))
        again.finish(Counted(3))
        assert len(again.parts) == 0
        assert reopened.result("mine", Counted) == Counted(3)  # it finished last
        assert reopened.analysis_run("mine", {"seed": 1}).number == 3


def test_parts_that_are_no_json_are_refused(store: Store) -> None:
    parts = store.analysis_run("mine", {}).parts
    with pytest.raises(StoreError, match="read again"):
        parts["a"] = float("nan")
    with pytest.raises(KeyError):
        del parts["a"]
    assert dict(parts) == {}


def test_unfinished_runs_of_another_version_are_forgotten(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.analysis_run("mine", {}).parts["a"] = 1
    monkeypatch.setattr("edgeflare.store.analyses.__version__", "99")
    run = store.analysis_run("mine", {})
    assert (run.number, dict(run.parts)) == (1, {})
