"""Campaigns in PostgreSQL find what those in a folder find, by folder or address, and go on."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from campaigns import finished, found_in
from command import DEMO_PAIR, edgeflare, environment, must_run
from postgres_server import own_server

from edgeflare.store import Store
from edgeflare.store.servers import add_database
from edgeflare_lab.stores import postgres

pytestmark = pytest.mark.extended
ARGUMENTS = ("run", *DEMO_PAIR, "--limit", 6, "--timeout", 0, "--no-survey")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with all in its folder."""
    home = tmp_path_factory.mktemp("plain")
    ran = edgeflare(*ARGUMENTS, "--out", "plain", home=home)
    assert ran.code in (0, 1), ran.err
    return home / "plain"


def test_every_command_takes_the_address(tmp_path: Path, plain: Path, database_url: str) -> None:
    ran = edgeflare(*ARGUMENTS, "--control", "--out", "c", "--store", database_url, home=tmp_path)
    assert ran.code in (0, 1), ran.err
    assert found_in(tmp_path / "c") == found_in(plain)
    assert {path.name for path in (tmp_path / "c").iterdir()} >= {"store.json", "control"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    address = f"{database_url}/c"
    shown = edgeflare("show", address, "--json", home=elsewhere)
    own = edgeflare("show", "c", "--json", home=tmp_path)
    assert shown.json["campaign"] == own.json["campaign"]
    assert shown.json["control"] == own.json["control"]
    assert edgeflare("status", address, home=elsewhere).out.count("finished") == 1
    resumed = edgeflare("resume", address, home=elsewhere)
    assert resumed.code == ran.code
    assert f"{address}" in resumed.err
    assert f"edgeflare export {address} c-pictures" in resumed.err
    assert edgeflare("report", address, "--out", "r.html", home=elsewhere).code == 0
    assert f"edgeflare replay {address} --trigger" in (elsewhere / "r.html").read_text()
    assert edgeflare("report", address, home=elsewhere).code == 0
    assert (elsewhere / "c-report.html").is_file()
    assert edgeflare("export", address, "exported", home=elsewhere).code == 0
    assert edgeflare("replay", address, "--out", "replayed", home=elsewhere).code in (0, 1)
    assert edgeflare("corpus", "add", "corpus", address, home=elsewhere).code == 0
    assert edgeflare("compare", address, plain, home=elsewhere).code == 0
    explained = must_run("explain", address, "--json", home=elsewhere)
    again = must_run("explain", "c", "--json", home=tmp_path)
    assert again.json["findings"] == explained.json["findings"]


@pytest.mark.parametrize(
    ("address", "code", "words"),
    [
        ("postgresql://127.0.0.1:1/d/c", 3, "can't be reached"),
        ("postgresql://u:secret@h/d/c", 2, "has a password"),
        ("postgresql://u@h/d", 2, "names a database"),
    ],
)
def test_an_address_that_can_not_be_used_is_one_sentence(tmp_path, address, code, words) -> None:
    for command in ("show", "resume", "report"):
        ran = edgeflare(command, address, home=tmp_path)
        assert ran.code == code
        assert ran.err.count("\n") == 1
        assert words in ran.err
        assert "secret" not in ran.err
    again = edgeflare(*ARGUMENTS, "--store", "mysql://h/d", "--out", "c", home=tmp_path)
    assert again.code == 2
    assert "--store: mysql://h/d" in again.sentence
    gone = edgeflare(
        *ARGUMENTS, "--store", "postgresql://127.0.0.1:1/d", "--out", "c", home=tmp_path
    )
    assert gone.code == 3
    assert "can't be reached" in gone.sentence
    assert gone.err.count("\n") == 1  # before any device is asked
    assert not (tmp_path / "c").exists()


def begun(home: Path, url: str) -> "subprocess.Popen[bytes]":
    """Start a campaign in a process; return it once two outcomes are stored."""
    add_database(url)  # this process looks, too
    words = [*ARGUMENTS, "--out", "c", "--store", url]
    process = subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", *map(str, words)],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while process.poll() is None:
        if finished(home / "c") >= 2:
            break
        time.sleep(0.02)
    return process


def test_a_killed_campaign_goes_on_by_its_address(tmp_path, plain, database_url) -> None:
    with begun(tmp_path, database_url) as process:
        process.kill()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    resumed = edgeflare("resume", f"{database_url}/c", home=elsewhere)
    assert resumed.code in (0, 1), resumed.err
    assert found_in(tmp_path / "c") == found_in(plain)


def test_a_server_that_ends_in_the_middle(tmp_path, plain, monkeypatch) -> None:
    monkeypatch.setattr(postgres, "PATIENCE_S", 1)
    with own_server() as server:
        url = server.new_database()
        add, added = Store.add_outcome, []

        def add_until_it_ends(store: Store, *words: object, **named: object) -> bool:
            added.append(1)
            if len(added) == 3:
                server.stop("immediate")
            return add(store, *words, **named)  # type: ignore[arg-type]

        with monkeypatch.context() as ending:
            ending.setattr(Store, "add_outcome", add_until_it_ends)
            ran = edgeflare(*ARGUMENTS, "--out", "c", "--store", url, home=tmp_path)
        assert ran.code == 3
        assert f"the database {url} of " in ran.err
        assert "`edgeflare resume" in ran.err
        assert "Traceback" not in ran.both
        server.start()
        resumed = edgeflare("resume", "c", home=tmp_path)
        assert resumed.code in (0, 1), resumed.err
        assert found_in(tmp_path / "c") == found_in(plain)
