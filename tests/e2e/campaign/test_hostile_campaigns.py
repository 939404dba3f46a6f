"""Campaigns on devices that answer nonsense: a stated error, no false finding, and the others go on."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import ROOT, edgeflare, must_run
from small_models import dense_onnx, flat_weights

from edgeflare import (
    CampaignConfig,
    Notice,
    campaign_status,
    config_from,
    resume_campaign,
    run_campaign,
    summarize,
)
from edgeflare.campaign import survey_alone
from edgeflare.campaign.status import queries_before
from edgeflare.devices import connect
from edgeflare.errors import DeviceError, EdgeFlareError, InferenceFailedError
from edgeflare.store import Store
from edgeflare_agent.wire import Frame, Kind
from edgeflare_lab.testing import FakeAgent, Replace, connecting

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("own_home")]

SEEDS = 4
SHAPE = (1, 8, 8, 1)
TENSOR = {"dtype": "float32", "quantization": None}
LOADED = {
    "inputs": [{"name": "x", "shape": list(SHAPE), **TENSOR}],
    "outputs": [{"name": "y", "shape": [1, 4], **TENSOR}],
    "metadata": {"edgeflare.input": '{"scale": "1/255"}'},
}


def infer(sample: np.ndarray) -> np.ndarray:
    """The original, with rounded weights."""
    sums = sample.reshape(1, 64) / np.float32(255) @ flat_weights().round(1)
    powers = np.exp(sums - sums.max())
    return np.asarray(powers / powers.sum(), np.float32)


def agent(*plan: Replace, **ending: Any) -> FakeAgent:
    return FakeAgent(*plan, loaded=LOADED, infer=infer, **ending)


def config(folder: Path, devices: int) -> CampaignConfig:
    rng = np.random.default_rng(0)
    np.savez(folder / "seeds.npz", images=rng.integers(0, 256, (SEEDS, 8, 8, 1), np.uint8))
    model = dense_onnx(folder / "model.onnx", list(SHAPE))
    values = {
        "original": {"path": model},
        "deployed": {"path": model},
        "seeds": {"path": folder / "seeds.npz"},
        "search": {"strategy": "dflare", "max_queries": 60, "timeout_s": 0},
        "survey": {"enabled": False},
        "devices": ["local"] * devices,
        "out": folder / "out",
        "fleet": {"handover_s": 0.2, "patience_s": 1.0},
    }
    return config_from(values, "test")


def run(folder: Path, *agents: FakeAgent) -> tuple[Path, list[str]]:
    """Run a campaign on these agents; return its folder and what the user was told."""
    names = ["local", *(f"local#{k}" for k in range(2, len(agents) + 1))]
    told: list[str] = []
    done = run_campaign(
        config(folder, len(agents)),
        connect=connecting(dict(zip(names, agents, strict=True)), connect),
        progress=lambda event: told.append(event.text) if isinstance(event, Notice) else None,
    )
    return done, told


def results(change: Callable[[Frame], Frame]) -> Replace:
    """All answers are changed after the preflight's and the seeds' own."""
    return Replace("RESULT", change, first=40)


def with_array(array: np.ndarray) -> Callable[[Frame], Frame]:
    return lambda honest: honest._replace(arrays=(array,) * len(honest.arrays))


def with_seconds(value: Any) -> Callable[[Frame], Frame]:
    return lambda honest: honest._replace(
        header={**honest.header, "seconds": [value] * len(honest.arrays)}
    )


def error(code: str, kind: str = "RESULT", first: int = 40) -> Replace:
    """Replies of a kind become errors with this code, after the preflight's and the seeds' own."""
    about = {"code": code, "message": "says the device"}
    return Replace(
        kind,
        lambda honest: Frame(Kind.ERROR, {"id": honest.header.get("id"), **about}),
        first=first,
    )


HOSTILE = {
    "NaN seconds": results(with_seconds(float("nan"))),
    "twice the values": results(with_array(np.eye(1, 8, 7, dtype=np.float32))),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_the_other_device_does_what_a_hostile_one_leaves(tmp_path: Path, case: str) -> None:
    folder, told = run(tmp_path, agent(HOSTILE[case]), agent())
    assert any("local is lost" in text for text in told), told
    with Store.open(folder) as store:
        outcomes = list(store.outcomes())
    assert len(outcomes) == SEEDS
    assert {one.deployed.size for one in outcomes if isinstance(one.deployed, np.ndarray)} <= {4}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_campaign_on_a_hostile_device_alone_ends_as_a_devices_fault(tmp_path, case) -> None:
    with pytest.raises(DeviceError, match=r"local sent\s.*expected") as caught:
        run(tmp_path, agent(HOSTILE[case]))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("code", ["inference", "busy", "err_17"])
def test_an_error_of_any_code_ends_no_campaign_that_has_another_device(tmp_path, code) -> None:
    folder, _ = run(tmp_path, agent(error(code)), agent())
    with Store.open(folder) as store:
        outcomes = list(store.outcomes())
    assert len(outcomes) == SEEDS
    assert "exhausted" in {str(one.status.value) for one in outcomes}


@pytest.mark.parametrize(
    ("code", "kind", "first"),
    [("err_17", "RESULT", 0), ("bad-request", "CONFIGURED", 0), ("inference", "PONG", 5)],
)
def test_an_error_of_any_code_at_any_moment_is_a_stated_error(tmp_path, code, kind, first) -> None:
    with pytest.raises(EdgeFlareError, match="the device") as caught:
        run(tmp_path, agent(error(code, kind, first)))
    assert caught.value.exit_code in (2, 3)


class Refusing:
    """A device that answers on the seeds; on all other inputs it can't, while it is `broken`."""

    def __init__(self, folder: Path) -> None:
        self.broken = True
        self._file = folder / "seeds.npz"

    def agent(self) -> FakeAgent:
        def infer_seeds(sample: np.ndarray) -> np.ndarray:
            is_seed = (
                (np.load(self._file)["images"] == sample.reshape(8, 8, 1)).all((1, 2, 3)).any()
            )
            return infer(sample) if is_seed or not self.broken else np.full((1, 4), np.nan)

        def refuse(honest: Frame) -> Frame:
            if not any(np.isnan(array).any() for array in honest.arrays):
                return honest
            header = {"id": honest.header["id"], "code": "inference", "message": "too hot"}
            return Frame(Kind.ERROR, header)

        return FakeAgent(Replace("RESULT", refuse), loaded=LOADED, infer=infer_seeds)


def test_where_every_search_failed_a_campaign_ends_with_code_3_and_can_be_resumed(tmp_path) -> None:
    device = Refusing(tmp_path)
    with pytest.raises(InferenceFailedError, match=r"4.*too hot") as caught:
        run(tmp_path, device.agent())
    assert caught.value.exit_code == 3
    folder = tmp_path / "out"
    assert campaign_status(folder).state == "failed"
    again = connecting({"local": device.agent()}, connect)
    with pytest.raises(InferenceFailedError, match="4 searches"):
        resume_campaign(folder, connect=again)
    device.broken = False
    resume_campaign(folder, connect=connecting({"local": device.agent()}, connect))
    summary = summarize(folder)
    assert (summary.finished, summary.by_status["failed"]) == (SEEDS, 0)


def test_a_finished_campaign_whose_searches_all_failed_is_not_called_done(tmp_path: Path) -> None:
    """As those of earlier versions are."""
    device = Refusing(tmp_path)
    with pytest.raises(InferenceFailedError):
        run(tmp_path, device.agent())
    with Store.open(tmp_path / "out") as store:
        store.state.finished = True
        before = queries_before(store).total()
    with pytest.raises(InferenceFailedError):
        resume_campaign(tmp_path / "out", connect=connecting({"local": device.agent()}, connect))
    with Store.open(tmp_path / "out") as store:
        assert not store.state.finished
        assert queries_before(store).total() >= before + store.tally().queries > before


def test_a_survey_that_the_device_answers_nowhere_ends_with_code_3(tmp_path: Path) -> None:
    config_ = survey_alone(config(tmp_path, 1))
    agents = {"local": Refusing(tmp_path).agent()}
    with pytest.raises(InferenceFailedError, match=r"surveyed.*too hot"):
        run_campaign(config_, connect=connecting(agents, connect))


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31mboard\u202e" + "x" * 8000
PROGRAM = """
import os, sys
if sys.argv[1].startswith("-"):
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
sys.path[:0] = {path!r}
from test_hostile_campaigns import ESCAPES, Replace, agent
agent(
    Replace("HELLO", {{"device": {{"board": ESCAPES}}}}),
    Replace("PONG", {{"throttle_reasons": [ESCAPES] * 50}}),
    Replace("RESULT", lambda _: "end"),
    stderr=ESCAPES,
    status=3,
).serve()
"""


def test_on_the_command_line_a_hostile_device_is_a_short_sentence_and_exit_code_3(tmp_path) -> None:
    program = tmp_path / "python.py"
    paths = [str(Path(__file__).parent), str(ROOT / "tests" / "helpers")]
    program.write_text(PROGRAM.format(path=paths))
    python = json.dumps(shlex.join([sys.executable, str(program)]))
    inventory = tmp_path / "devices.toml"
    inventory.write_text(f'[devices.bad]\ntransport = "local"\npython = {python}\n')
    pair = config(tmp_path, 1)
    models = ("--original", pair.original.path, "--deployed", pair.deployed.path)
    where = ("--inventory", inventory, "--device", "bad", "--patience", 1, "--out", tmp_path / "o")
    ran = edgeflare("run", *models, "--seeds", tmp_path / "seeds.npz", *where, home=tmp_path)
    assert ran.code == 3, ran.err
    assert "Traceback" not in ran.err
    assert "exit status 3" in ran.sentence
    assert all(char in "\n\r" or char.isprintable() for char in ran.out + ran.err)
    assert max(map(len, ran.err.splitlines())) < 2000
    status = must_run("devices", "status", "bad", "--inventory", inventory, home=tmp_path)
    assert "board" in status.out
    assert "owned" not in status.out
    assert all(char == "\n" or char.isprintable() for char in status.out + status.err)
