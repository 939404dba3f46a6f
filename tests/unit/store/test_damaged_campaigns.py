"""A campaign whose files are damaged is named in one sentence by every command that reads it."""

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaign_damage import DEEP, damage, run
from corpus_records import DAY, START, add, trigger_record
from stored_json import change
from stores import compared_campaign

from edgeflare.answers.columns import output_columns, output_from
from edgeflare.campaign.status import LIVE_NAME, first_status, write_status
from edgeflare.devices import DeviceState, DeviceStatus
from edgeflare.devices.telemetry import DeviceMinute
from edgeflare.store import CampaignLock
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.types import DetectionRules, Detections, Output, ValueRules, Values

SCORES = b"\0" * 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of two devices with telemetry and a status, and a corpus beside it."""
    home = tmp_path_factory.mktemp("whole")
    with compared_campaign(home / "campaign") as store:
        minute = DeviceMinute("host", START, 9, latencies={-400: 9}, rss_bytes=1 << 20, readings=1)
        store.add_telemetry([minute, replace(minute, minute=START + DAY)])
    write_status(
        replace(first_status(home / "campaign"), devices=(DeviceStatus("host", DeviceState.UP),))
    )
    with Corpus.open(home / "corpus", create=True) as corpus:
        add(corpus, trigger_record(1), trigger_record(2, seed=1))
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    return tmp_path


def put(database: Path, cell: str, value: Any) -> None:
    """Put a value into a column of every row."""
    table, column = cell.split(".")
    change(database, f"UPDATE {table} SET {column} = ?", values=[value])


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("campaign.created_at", "2026-11-22"),
        ("campaign.config", DEEP),
        ("campaign.config", '["fleet"]'),
        ("campaign.config", '{"search": {"tolerance": "x", "oracle": "tolerance"}}'),
        ("campaign.config", '{"limits": {"min_l2": "far"}}'),
        ("campaign.config", '{"control": true}'),
        ("campaign.models", '{"deployed": 7}'),
        ("campaign.models", '{"deployed": {}}'),
        ("campaign.models", '{"deployed": {"name": "\\ud800"}}'),
        ("devices.fingerprint", "{}}"),
        ("facts.value", "7"),
        ("facts.value", '["host", null]'),
        ("facts.value", '{"host": "gone"}'),
        ("seeds.label", "cat"),
        ("seed_answers.original", SCORES[:5]),
        ("seed_answers.deployed", SCORES),
        ("seed_answers.original_pieces", '["a"]'),
        ("seed_answers.original_pieces", '{"shape": [1], "dtype": "<f8", "rules": []}'),
        ("seed_answers.decision", "maybe"),
        ("outcomes.status", b"\xff\xfe"),
        ("outcomes.chain_seed", "9" * 5000),
        ("outcomes.search_queries", "many"),
        ("outcomes.l2", 9e999),
        ("outcomes.deployed", SCORES),
        ("outcomes.front", '[{"queries": 1}]'),
        ("outcomes.mutations", "[[1]]"),
        ("outcomes.finished_at", "yesterday"),
        ("replays.deployed", "text"),
        ("replays.decision", "0"),
        ("telemetry.latencies", "[[1, 10000000000000000000]]"),
        ("telemetry.latencies", "[[99999999, 1]]"),
        ("telemetry.minute", 5),
        ("telemetry.rss_bytes", "much"),
    ],
)
def test_a_database_that_opens_but_holds_damaged_values(home: Path, cell: str, value: Any) -> None:
    put(home / "campaign" / "campaign.sqlite", cell, value)
    for command in (("show",), ("report", "--format", "json")):
        ran = run(command[0], home / "campaign", *command[1:])
        if cell.startswith("replays"):  # of which the report makes nothing
            break
        assert ran.code == 2, ran.text
        assert len(ran.text.splitlines()) == 1
        assert f"{home / 'campaign'} is damaged" in ran.text
        assert "restore it from" in ran.text
    assert len(ran.text) < 1000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wall_s", '"long"'),
        ("wall_s", "-1"),
        ("measuring_queries", '{"local": "many"}'),
        ("faults", '{"": [{"words": "dark"}]}'),
        ("faults", "[]"),
        ("references", '{"int8": "x"}'),
        ("sample_rate", '"16 kHz"'),
        ("answers_checked", "7"),
        ("answers_checked", '{"": {"repeated": {"deployed": 2}}}'),
        ("references", '{"int8": {"kind": "int8", "path": "a", "sha256": null, "seeds": "x"}}'),
    ],
)
def test_a_fact_of_another_type_is_named(home: Path, name: str, value: str) -> None:
    statement = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
    change(home / "campaign" / "campaign.sqlite", statement, values=[name, value])
    ran = run("show", home / "campaign")
    assert ran.code == 2, ran.text
    assert f"{home / 'campaign'} is damaged" in ran.text


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("corpus.created_at", "0"),
        ("corpus.per_pair", "many"),
        ("corpus.shape", DEEP),
        ("entries.status", "lost"),
        ("entries.found_at", "2026-01-01"),
        ("entries.l2", "far"),
        ("looks.looked_at", b"\0"),
    ],
)
def test_a_corpus_that_opens_but_holds_damaged_values(home: Path, cell: str, value: Any) -> None:
    put(home / "corpus" / "corpus.sqlite", cell, value)
    ran = run("corpus", "show", home / "corpus")
    assert ran.code == 2, ran.text
    assert f"{home / 'corpus'} is damaged" in ran.text


@pytest.mark.parametrize(
    "text",
    [
        *(DEEP, "[]", "null", '"x"', "7", "", "\ufffe", "{}", '{"devices": [5]}'),
        *('"pid": "x"', '"done": null', '"updated_at": "now"', '"updated_at": "2026-11-22"'),
        *('"queries": 1e999', '"total": ' + "9" * 400, '"state": "up"', '"host": [{}]'),
        '"devices": [{"name": "a", "state": "up", "busy": NaN}]',
        '"\udce2"',
    ],
)
def test_a_status_file_of_other_contents_is_named(home: Path, text: str) -> None:
    live = home / "campaign" / LIVE_NAME
    if text.startswith('"') and text.endswith((*'"0]9}', "null", "1e999")) and ": " in text:
        text = (
            live.read_text().removesuffix("}") + f", {text}}}"
        )  # the last of a name's values counts
    live.write_text(text, encoding="utf-8", errors="surrogatepass")
    with CampaignLock(home / "campaign"):
        ran = run("status", home / "campaign")
    assert ran.code == 2, ran.text
    assert len(ran.text.splitlines()) == 1
    assert f"{live}" in ran.text
    live.unlink()
    live.mkdir()
    assert run("status", home / "campaign").code == 2


def test_what_was_half_written_is_removed_by_the_next_who_writes(home: Path) -> None:
    torn = [folder / f".new-{'0' * 32}" for folder in (home / "corpus" / "samples").iterdir()]
    for path in torn:
        path.write_bytes(b"half")
    with Corpus.open(home / "corpus") as corpus:
        add(corpus, trigger_record(3))
        assert len(list(corpus.inputs())) == len(corpus)
    assert not any(path.exists() for path in torn)


def test_random_damage_is_never_a_fault(home: Path) -> None:
    commands = (("show",), ("status",), ("report",), ("report", "--format", "csv"))
    for number in range(16):
        rng = random.Random(number)
        copy = home / str(number)
        shutil.copytree(home / "campaign", copy)
        what = damage(copy, rng)
        for name, *flags in rng.sample(commands, 2):
            try:
                run(name, copy, *flags)
            except AssertionError as fault:
                raise AssertionError(f"{number}: {what}") from fault


BOXES = Detections(np.zeros((1, 4)), np.zeros(1, np.int64), np.ones(1), DetectionRules())
VECTOR = Values(np.ones(2), ValueRules(tolerances=(0.5, 0.5)))


@pytest.mark.parametrize(
    ("answer", "place", "wrong"),
    [
        (BOXES, 0, "a"),
        (BOXES, 1, 7),
        (BOXES, 2, float("nan")),
        (BOXES, 3, 1),
        (VECTOR, 0, "distance"),
        (VECTOR, 1, None),
        (VECTOR, 2, 5),
        (VECTOR, 3, [1]),
        (VECTOR, 3, [0, 1]),
    ],
)
def test_rules_of_answers_that_no_campaign_has_are_refused(
    answer: Output, place: int, wrong: Any
) -> None:
    columns = output_columns("a", answer)
    data, about = columns["a"], columns["a_pieces"]
    assert type(output_from(data, about)) is type(answer)
    about["rules"][place] = wrong
    with pytest.raises(ValueError, match="no rules"):
        output_from(data, about)


@pytest.mark.filterwarnings("error")
def test_large_values_are_stored_as_they_are() -> None:
    array = np.array([1e300, -np.inf, 0.5])
    columns = output_columns("a", Values(array))
    found = output_from(columns["a"], columns["a_pieces"])
    assert isinstance(found, Values)
    np.testing.assert_array_equal(found.array, array)


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("DELETE FROM seeds", ("outcomes", "seed_answers", "replays")),
        ("DELETE FROM seeds WHERE position = 0", ("rows of seeds are missing", "outcomes")),
        ("UPDATE outcomes SET seed = 999 WHERE position = 1", ("1 rows of outcomes",)),
        ("DELETE FROM campaign", ("a row of its database is missing",)),
    ],
)
def test_rows_that_belong_to_nothing_are_named(
    home: Path, script: str, named: tuple[str, ...]
) -> None:
    folder = home / "campaign"
    change(folder / "campaign.sqlite", *script.split(";"))
    before = {path.name for path in folder.iterdir()}
    ran = run("show", folder)
    assert ran.code == 2, ran.text
    assert f"{folder} is damaged" in ran.text
    assert [one for one in named if one not in ran.text] == []
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("DELETE FROM devices; DELETE FROM facts", "devices"),
        (
            """INSERT OR REPLACE INTO facts VALUES ('finished', 'true');
            DELETE FROM outcomes WHERE position = 1""",
            "outcomes are missing",
        ),
    ],
)
def test_what_is_lost_beside_the_outcomes_is_a_notice(home: Path, script: str, named: str) -> None:
    change(home / "campaign" / "campaign.sqlite", *script.split(";"))
    ran = run("show", home / "campaign")
    assert ran.code == 0, ran.text
    assert named in " ".join(ran.text.split())
