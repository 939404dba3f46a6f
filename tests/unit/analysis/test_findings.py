"""What a campaign found, one by one: order, seeds, causes, and the lines that send it again."""

import shlex
from pathlib import Path

import numpy as np
from stores import compared_campaign, pooled_campaign, replicated_campaign

from edgeflare.analysis.findings import findings, results
from edgeflare.store import OutcomeRecord, SeedInput, Store
from edgeflare.types import Status


def test_findings_come_in_the_order_of_seeds_then_devices_whatever_finished_first(tmp_path):
    with compared_campaign(tmp_path / "c") as store:
        found = [(one.seed.id, one.outcome.replica) for one in findings(store)]
    assert found == [
        ("s/0.png", "host"),
        ("s/0.png", "board"),
        ("s/1.png", "host"),
        ("s/1.png", "board"),
        ("s/2.png", "board"),
        ("s/3.png", "host"),
    ]


def test_pages_of_seeds_do_not_lose_or_mix_any(tmp_path):
    count = 600  # more than two pages
    sample = np.zeros((2, 2, 1), np.uint8)
    with Store.create(tmp_path / "c", {}) as store:
        store.add_seeds(SeedInput(f"s{number}", sample, number) for number in range(count))
        digest = store.put_sample(sample)
        backwards = [number for number in reversed(range(count)) if number % 3]
        for number in backwards:
            store.add_outcome(OutcomeRecord(f"s{number}", Status.FOUND, number, trigger=digest))
        found = [(one.seed.id, one.seed.label, one.outcome.chain_seed) for one in findings(store)]
    assert found == [(f"s{number}", number, number) for number in reversed(backwards)]


def test_a_finding_has_what_its_own_device_answered_on_the_seed(tmp_path):
    with compared_campaign(tmp_path / "c") as store:
        by_device = {
            one.outcome.replica: one.seed.outputs.deployed.tolist()
            for one in findings(store)
            if one.seed.id == "s/1.png" and one.seed.outputs
        }
    assert by_device == {"host": [0.5, 0.25, 0.25], "board": [0.5, 0.3125, 0.1875]}


def test_what_has_no_input_to_show_is_a_result_but_no_finding(finished):
    assert [one.seed.id for one in findings(finished)] == [
        *(f"digits/{number}.png" for number in (0, 1, 2, 3, 6, 7, 8))
    ]
    assert [one.seed.id for one in results(finished)] == [f"digits/{n}.png" for n in range(9)]


def test_an_input_that_no_device_can_answer_is_a_finding_without_a_cause(tmp_path):
    with pooled_campaign(tmp_path / "c") as store:
        *_, last = findings(store)
    assert (last.outcome.status, last.cause) == (Status.FAILED, "not attributed")


def test_the_line_that_sends_it_again_survives_a_shell(tmp_path):
    folder = tmp_path / "a campaign; rm *"
    with Store.create(folder, {}) as store:
        store.add_seeds([SeedInput("it's a $seed.png", np.zeros((2, 2, 1), np.uint8))])
        trigger = store.put_sample(np.ones((2, 2, 1), np.uint8))
        store.add_outcome(OutcomeRecord("it's a $seed.png", Status.FOUND, 0, trigger=trigger))
        (finding,) = findings(store)
    assert shlex.split(finding.command) == [
        *("edgeflare", "replay", str(folder), "--trigger", "it's a $seed.png")
    ]


def test_the_line_works_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.create(Path("-c"), {}) as store:
        store.add_seeds([SeedInput("s.png", np.zeros((2, 2, 1), np.uint8))])
        trigger = store.put_sample(np.ones((2, 2, 1), np.uint8))
        store.add_outcome(OutcomeRecord("s.png", Status.FOUND, 0, trigger=trigger))
        (finding,) = findings(store)
    assert shlex.split(finding.command)[2] == str(tmp_path / "-c")


def test_a_device_that_searched_for_itself_is_named_as_the_configuration_names_it(tmp_path):
    with replicated_campaign(tmp_path / "c") as store:  # its configuration names no devices
        by_name = {one.outcome.replica: shlex.split(one.command)[-2:] for one in findings(store)}
    assert by_name == {"pi #1": ["--device", "pi #1"], "jetson": ["--device", "jetson"]}
    with Store.create(tmp_path / "d", {"devices": ["local", "ssh://pi@bench"]}) as store:
        store.state.replicas = ["local", "pi@bench"]
        store.add_seeds([SeedInput("s", np.zeros((2, 2, 1), np.uint8))])
        trigger = store.put_sample(np.ones((2, 2, 1), np.uint8))
        scores = np.array([0.4, 0.6])
        store.add_outcome(
            OutcomeRecord(
                "s", Status.FOUND, 0, trigger=trigger, deployed=scores, replica="pi@bench"
            )
        )
        (finding,) = findings(store)
    assert shlex.split(finding.command)[-2:] == ["--device", "ssh://pi@bench"]


def test_a_campaign_in_the_current_folder_is_named_in_full(tmp_path, monkeypatch):
    pooled_campaign(tmp_path / "c").close()
    monkeypatch.chdir(tmp_path / "c")
    with Store.open(Path()) as store:
        first = next(findings(store))
    assert shlex.split(first.command)[2] == str((tmp_path / "c").resolve())
