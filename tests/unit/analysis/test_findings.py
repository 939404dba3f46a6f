"""What a campaign found, one by one: order, seeds, causes, and the lines that send it again."""

import shlex
from pathlib import Path

import numpy as np
import pytest
from stores import compared_campaign, ended, pooled_campaign, replicated_campaign, store_of

from edgeflare.analysis.findings import findings, results
from edgeflare.store import Store
from edgeflare.types import Status


def test_findings_come_in_the_order_of_seeds_then_devices_whatever_finished_first(tmp_path):
    with compared_campaign(tmp_path / "c") as store:
        found = list(findings(store))
    assert [(one.seed.id[2], one.outcome.replica) for one in found] == [
        *(("0", "host"), ("0", "board"), ("1", "host"), ("1", "board")),
        *(("2", "board"), ("3", "host")),
    ]
    of_seed = [one.seed.outputs.deployed.tolist() for one in found[2:4]]
    assert of_seed == [[0.5, 0.25, 0.25], [0.5, 0.3125, 0.1875]]  # each device's own


def test_pages_of_seeds_do_not_lose_or_mix_any(tmp_path):
    count = 600  # more than two pages
    backwards = [number for number in reversed(range(count)) if number % 3]
    ends = ({"seed": number, "trigger": 1} for number in backwards)
    with store_of(tmp_path / "c", ends, seeds=count, label=int) as store:
        found = [(one.seed.label, one.outcome.chain_seed) for one in findings(store)]
    assert found == [(number, number) for number in reversed(backwards)]


def test_what_has_no_input_to_show_is_a_result_but_no_finding(finished):
    shown = (0, 1, 2, 3, 6, 7, 8)
    assert [one.seed.id for one in findings(finished)] == [f"digits/{n}.png" for n in shown]
    assert [one.seed.id for one in results(finished)] == [f"digits/{n}.png" for n in range(9)]


def test_an_input_that_no_device_can_answer_is_a_finding_without_a_cause(tmp_path):
    with pooled_campaign(tmp_path / "c") as store:
        *_, last = findings(store)
    assert (last.outcome.status, last.cause) == (Status.FAILED, "not attributed")


@pytest.mark.parametrize(
    ("folder", "seed"), [("a campaign; rm *", "it's a $seed.png"), ("-c", "s.png")]
)
def test_the_line_that_sends_it_again_survives_a_shell_and_works_from_any_folder(
    tmp_path, monkeypatch, folder, seed
):
    monkeypatch.chdir(tmp_path)
    with store_of(Path(folder), [{"seed": seed, "trigger": 1}], seeds=[seed]) as store:
        (finding,) = findings(store)
    named = [str(tmp_path / folder), "--trigger", seed]
    assert shlex.split(finding.command) == ["edgeflare", "replay", *named]


def test_a_campaign_in_the_current_folder_is_named_in_full(tmp_path, monkeypatch):
    pooled_campaign(tmp_path / "c").close()
    monkeypatch.chdir(tmp_path / "c")
    with Store.open(Path()) as store:
        first = next(findings(store))
    assert shlex.split(first.command)[2] == str((tmp_path / "c").resolve())


def test_a_device_that_searched_for_itself_is_named_as_the_configuration_names_it(tmp_path):
    with replicated_campaign(tmp_path / "c") as store:  # its configuration names no devices
        by_name = {one.outcome.replica: shlex.split(one.command)[-2:] for one in findings(store)}
    assert by_name == {"pi #1": ["--device", "pi #1"], "jetson": ["--device", "jetson"]}
    names, config = ["local", "pi@bench"], {"devices": ["local", "ssh://pi@bench"]}
    with store_of(tmp_path / "d", seeds=1, replicas=names, config=config) as store:
        ended(store, 0, trigger=1, deployed=np.array([0.4, 0.6]), replica="pi@bench")
        (finding,) = findings(store)
    assert shlex.split(finding.command)[-2:] == ["--device", "ssh://pi@bench"]
