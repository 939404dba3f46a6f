"""One machine under two names, with and without the delegate: what comes of the runtime alone."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from command import DEMO, Ran, must_run

pytestmark = pytest.mark.extended

SEEDS = 10

INVENTORY = """
[devices.plain]
transport = "local"
options = { delegate = false }
"""
RESOLVERS = {
    "local": OpResolverType.AUTO,
    "plain": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "devices.toml").write_text(INVENTORY)
    return folder


@pytest.fixture(scope="module")
def ran(home: Path) -> Ran:
    command = ("demo", "--device", "local", "--device", "plain", "--fleet", "replicate")
    return must_run(*command, "--seeds", SEEDS, "--out", "both", "--json", home=home)


def answers(samples: np.ndarray, resolver: OpResolverType) -> np.ndarray:
    """The demo model's own float outputs on raw images, uint8 [n, 28, 28, 1], by LiteRT alone."""
    interpreter = Interpreter(
        str(DEMO / "deployed.tflite"), experimental_op_resolver_type=resolver, num_threads=1
    )
    interpreter.allocate_tensors()
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    found = []
    for sample in samples:
        interpreter.set_tensor(given["index"], (sample[None].astype(int) - 128).astype(np.int8))
        interpreter.invoke()
        found.append(interpreter.get_tensor(result["index"])[0].astype(np.float64))
    return np.array(found)


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(home / "both" / "campaign.sqlite")
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def test_seeds_differ_as_the_runtime_says_by_itself(ran: Ran) -> None:
    with np.load(DEMO / "seeds.npz") as file:
        images = file["images"][:SEEDS].reshape(-1, 28, 28, 1)
    local, plain = (answers(images, RESOLVERS[name]) for name in ("local", "plain"))
    (pair,) = ran.json["agreements"]
    assert (pair["first"], pair["second"]) == ("local", "plain")
    assert pair["seeds"]["inputs"] == SEEDS
    assert pair["seeds"]["largest_difference"] == pytest.approx(np.abs(local - plain).max())
    assert pair["seeds"]["bit_equal"] == (local == plain).all(axis=1).sum()
    assert pair["seeds"]["labels_differ"] == (local.argmax(1) != plain.argmax(1)).sum()


def test_each_trigger_is_counted_once_where_it_triggers(home: Path, ran: Ran) -> None:
    triggers: dict[str, dict[str, tuple[bool, np.ndarray]]] = {}
    for sample, device, decision, scores in rows(
        home, "select sample_digest, on_device, decision, deployed from replays"
    ):
        triggers.setdefault(sample, {})[device] = (decision == "deviation", np.frombuffer(scores))
    for sample, device, scores in rows(
        home,
        "select sample_digest, replica, deployed from outcomes "
        "where status in ('found', 'seed-deviates')",
    ):
        triggers[sample][device] = (True, np.frombuffer(scores))
    local, plain = (
        np.array([by_device[name][0] for by_device in triggers.values()])
        for name in ("local", "plain")
    )
    differences = [np.abs(one["local"][1] - one["plain"][1]).max() for one in triggers.values()]
    (pair,) = ran.json["agreements"]
    assert pair["triggers"]["inputs"] == len(triggers) >= SEEDS
    assert pair["triggers"]["largest_difference"] == max(differences) > 0
    assert pair["triggers"]["bit_equal"] == differences.count(0)
    assert pair["on_both"] == (local & plain).sum() > 0
    assert pair["only_first"] == (local & ~plain).sum()
    assert pair["only_second"] == (plain & ~local).sum()
    assert ran.json["every_device"]["on_all"] == pair["on_both"]
    one_sided = {
        (sample, next(name for name, (deviates, _) in by_device.items() if deviates))
        for sample, by_device in triggers.items()
        if sum(deviates for deviates, _ in by_device.values()) == 1
    }
    named = {(one["trigger"], one["on_device"]) for one in pair["examples"]}
    assert named == one_sided


def test_only_the_runtime_differs_and_show_says_so(home: Path, ran: Ran) -> None:
    (pair,) = ran.json["agreements"]
    assert pair["cause"] == "runtime"
    assert pair["differences"] == [
        {
            "field": "runtime.delegate",
            "first": "XNNPACK, 14 of 14 operators",
            "second": None,
            "side": "runtime",
        }
    ]
    shown = must_run("show", "both", home=home)
    assert f"plain: {pair['on_both']}" in shown.out
    assert "delegate XNNPACK, 14" in shown.out
