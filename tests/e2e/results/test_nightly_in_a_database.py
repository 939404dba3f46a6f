"""A history in PostgreSQL, to which the nights of two hosts belong."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command import DEMO, must_run
from postgres_server import PostgresServer

from edgeflare.errors import StoreError, UsageError
from edgeflare.nightly import Night, NightRun, accept_night, load_nightly, run_nightly
from edgeflare.nightly.history import History
from edgeflare.store import CampaignLock, Store, folder_at
from edgeflare.store.corpus.corpus import Corpus
from edgeflare_bench.made_models import perturb_weights

pytestmark = pytest.mark.extended


@pytest.fixture
def hosts(tmp_path: Path, database_url: str) -> tuple[Path, Path]:
    """The homes of two hosts, each with the same model and `nightly.toml`."""
    made = tmp_path / "deployed.onnx"
    perturb_weights(DEMO / "original.onnx", made, percent=20, by=0.05, seed=0)
    homes = tmp_path / "one", tmp_path / "two"
    for home in homes:
        home.mkdir()
        (home / "deployed.onnx").write_bytes(made.read_bytes())
        (home / "nightly.toml").write_text(
            f'history = "history"\nstore = "{database_url}"\nsamples = "{tmp_path / "samples"}"\n'
            'devices = ["local"]\n[keep]\nnights = 1\n[[models]]\nname = "lenet"\n'
            f'original.path = "{(DEMO / "original.onnx").as_posix()}"\n'
            f'deployed.path = "deployed.onnx"\n'
            f'seeds = {{path = "{(DEMO / "seeds.npz").as_posix()}", limit = 3}}\n'
            "[search]\nmax_queries = 200\n"
        )
    return homes


def run_on(home: Path) -> tuple[Night, NightRun]:
    night = run_nightly(load_nightly(home / "nightly.toml"))
    (run,) = night.runs
    return night, run


def test_a_night_on_another_host_is_held_against_the_last_green_one(
    hosts: tuple[Path, Path], database_url: str, postgres_server: PostgresServer
) -> None:
    one, two = hosts
    first, began = run_on(one)
    assert (began.state, first.number) == ("first", 1), began.words
    assert not list(one.rglob("campaign.sqlite"))
    second, green = run_on(two)
    assert (green.state, green.compared_with, second.number) == ("green", first.stamp, 2), (
        green.words
    )
    assert (green.replay.still, green.replay.new) == (3, 0)  # the first host's triggers, sent again

    corpus = f"{database_url}/history/corpus/lenet"
    with Corpus.open(folder_at(corpus)) as shared:
        assert len(shared) >= 3
    shown = must_run("corpus", "show", corpus, "--json", home=one)
    assert shown.json["entries"] >= 3
    assert shown.json["size"] > 100_000

    third, _ = run_on(one)  # one night's campaigns stay, and those of the last green night
    assert third.number == 3
    assert [night.number for night in History(two / "history").nights()] == [1, 2, 3]
    names = postgres_server.psql(
        "SELECT count(DISTINCT nspname) FROM pg_namespace WHERE nspname LIKE 'history/nights/%'",
        database_url.rpartition("/")[2],
    )
    assert int(names) == 3  # search, replay and seeds of the third
    fourth, again = run_on(two)  # whose folders of the second are of a night that is pruned
    assert (again.state, again.compared_with, fourth.number) == ("green", third.stamp, 4)
    page = (two / "history" / "index.html").read_text("utf-8")
    assert all(f"{night.started_at:%Y-%m-%d}" in page for night in (first, fourth))


def test_two_hosts_dont_run_nights_of_one_history_at_once(hosts: tuple[Path, Path]) -> None:
    one, two = hosts
    run_on(one)
    with CampaignLock(one / "history"), pytest.raises(StoreError, match="being run"):
        run_on(two)


def test_two_hosts_may_begin_a_history_at_once(tmp_path: Path, database_url: str) -> None:
    histories = [History(tmp_path / host / "history", store=database_url) for host in "abcd"]
    with ThreadPoolExecutor(len(histories)) as pool:
        list(pool.map(lambda one: one.make(), histories))
    assert all(one.nights() == [] for one in histories)


def test_there_is_nothing_to_accept_before_the_first_night(hosts: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="history 'history'"):
        accept_night(load_nightly(hosts[0] / "nightly.toml"))


@pytest.mark.slow
def test_a_history_stays_where_it_is(hosts: tuple[Path, Path], database_url: str) -> None:
    one, two = hosts
    in_files = (two / "nightly.toml").read_text().replace(f'store = "{database_url}"\n', "")
    (two / "in-files.toml").write_text(in_files)
    run_nightly(load_nightly(two / "in-files.toml"))
    with pytest.raises(UsageError, match="the database"):
        run_on(two)
    (one / "campaigns").mkdir()
    Store.create(one / "history", {}, database=database_url).close()
    (one / "history" / "store.json").unlink()
    with pytest.raises(UsageError, match="name 'history'"):
        run_on(one)


@pytest.mark.slow
def test_a_damaged_night_is_left_out(hosts, database_url, postgres_server) -> None:
    one, _ = hosts
    night, _ = run_on(one)
    damaged = json.dumps({"stamp": "20990101T000000Z", "number": "none"})
    postgres_server.psql(
        f"INSERT INTO history.nights VALUES ('20990101T000000Z', '{damaged}')",
        database_url.rpartition("/")[2],
    )
    history = History(one / "history")
    assert [found.stamp for found in history.nights()] == [night.stamp]
    assert [folder.name for folder in history.damaged()] == ["20990101T000000Z"]
