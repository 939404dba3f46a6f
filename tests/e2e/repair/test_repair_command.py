"""``edgeflare repair``: what is deployed in place of the model, and what it does on its device."""

import csv
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime
import pytest
from command import DEMO, DEMO_PAIR, Ran, edgeflare, must_run
from virtual_board import VirtualBoard, within

from edgeflare import search
from edgeflare.answers.oracles import margin
from edgeflare.answers.outputs import load_repair, save_repair
from edgeflare.repair import HELD_OUT, RepairedCampaign, examples_of, train_campaign, train_repair
from edgeflare.reports import SNIPPETS
from edgeflare.store import Store
from edgeflare.types import TRIGGERS, Outputs
from edgeflare.words.repair import source_text
from edgeflare_agent.repair import Repair

FLAGS = ("--no-survey", "--strategy", "dflare")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with triggering inputs of some thirty seed inputs."""
    home = tmp_path_factory.mktemp("home")
    must_run("run", *DEMO_PAIR, "--limit", 40, *FLAGS, "--out", "out", home=home)
    return home / "out"


@pytest.fixture
def copy(campaign: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(campaign, tmp_path / "out"))


def run_with(repair: object, home: Path, *more: object) -> Ran:
    flags = (*DEMO_PAIR, "--limit", 3, *FLAGS, "--repair", repair, *more)
    return edgeflare("run", *flags, "--out", "again", home=home)


def answers(folder: Path) -> Iterator[Outputs]:
    with Store.open(folder) as store:
        for seed in store.seeds():
            assert seed.outputs is not None
            yield seed.outputs


def check_answers(before: Path, after: Path, repair: Repair) -> None:
    """The device gives what the repair makes, on this machine, of the model's own answers."""
    pairs = list(
        zip(answers(before), answers(after), strict=False)
    )  # a search may begin with fewer
    assert pairs
    for plain, repaired in pairs:
        made = repair.of_scores(np.asarray(plain.deployed))
        np.testing.assert_allclose(np.asarray(repaired.deployed), made, rtol=0, atol=1e-6)
        assert np.argmax(made) == np.argmax(np.asarray(repaired.deployed))


@pytest.mark.extended
def test_drepair_is_judged_on_other_inputs_and_searched_again(copy: Path, tmp_path: Path) -> None:
    ran = must_run("repair", "train", "out", "--json", home=tmp_path)
    found = json.loads(ran.out)
    trained = found["trained"]
    examples = examples_of(copy)
    assert trained["triggering"] == int(examples.triggering.sum()) >= 20
    assert len(trained["folds"]) == 25
    assert trained["improvement_ratio"] > 0.2

    repair = load_repair(Path(found["path"]))
    check_answers(copy, Path(found["search"]["folder"]), repair)
    session = onnxruntime.InferenceSession(found["onnx"], providers=["CPUExecutionProvider"])
    for scores in examples.scores:
        (made,) = session.run(None, {"probabilities": scores[None]})
        np.testing.assert_allclose(made[0], repair.of_scores(scores), rtol=0, atol=1e-12)
    assert found["search"]["after"]["found"] > 0

    text = edgeflare("repair", "train", "out", home=tmp_path).out  # finished: nothing is asked
    assert "DFLARE's table 7" in text
    assert "times the queries" in text


@pytest.mark.slow
def test_a_bound_on_what_is_induced_is_kept(copy: Path, tmp_path: Path) -> None:
    more = ("--variant", "standardised", "--max-inducing", "10%", "--no-search", "--json")
    found = edgeflare("repair", "train", "out", *more, home=tmp_path).json
    assert found["trained"]["inducing_ratio"] <= 0.1
    assert found["search"] is None
    session = onnxruntime.InferenceSession(found["onnx"], providers=["CPUExecutionProvider"])
    repair, replaced = load_repair(Path(found["path"])), 0
    for scores in examples_of(copy).scores:
        (made,) = session.run(None, {"probabilities": scores[None]})
        np.testing.assert_allclose(made[0], repair.of_scores(scores), rtol=0, atol=1e-12)
        replaced += np.abs(made[0] - scores).max() > 1e-9
    assert 0 < replaced < 40


@pytest.mark.slow
def test_a_new_search_is_bounded_and_says_what_it_may_cost(copy: Path, tmp_path: Path) -> None:
    args = ("repair", "abstain", "out", "--total-queries", 300)
    ran = must_run(*args, "--json", home=tmp_path)
    assert all(
        part in ran.err for part in ("3 new searches", "40 seeds", "300 device queries", "900")
    )
    search = ran.json["search"]
    assert 0 < search["after"]["left"] < 40
    assert search["before"]["searched"] == search["after"]["searched"]  # of the same seeds
    with Store.open(Path(search["folder"])) as store:
        queries = [one.seed_queries + one.search_queries for one in store.outcomes()]
    assert sum(queries) <= 300
    assert "reached its bound" in edgeflare(*args, home=tmp_path).out


def test_the_newest_result_of_each_repair_is_in_reports(copy: Path, tmp_path: Path) -> None:
    ran = edgeflare("analyse", "abstain", "out", "--no-search", "--json", home=tmp_path)
    assert ran.code == 0, ran.err
    trained = train_repair(examples_of(copy), max_inducing=0.4, random_seeds=1)
    repaired = RepairedCampaign("r.npz", "", 0, "dflare", replace(trained, repair=None))
    with Store.open(copy) as store:
        store.add_result("train", repaired)
        assert store.result("train", RepairedCampaign) == repaired
    threshold = ran.json["abstention"]["threshold"]
    shown = edgeflare("show", "out", home=tmp_path).out
    assert f"{threshold:.4g}" in shown
    assert f"{trained.below:.3f}" in shown


@pytest.mark.extended
def test_an_abstaining_model_decides_only_above_its_margin(copy: Path, tmp_path: Path) -> None:
    ran = must_run("repair", "abstain", "out", "--snippet", "python", home=tmp_path)
    assert "search by boundary" in ran.out
    found = edgeflare("repair", "abstain", "out", "--json", home=tmp_path).json
    told = found["abstention"]
    threshold = told["threshold"]
    assert [one["source"] for one in told["caught"]] == [
        source_text(source) for source in (HELD_OUT, "dflare", "boundary")
    ]
    again = Path(found["search"]["folder"])
    check_answers(copy, again, load_repair(Path(found["path"])))
    with Store.open(again) as store:
        triggers = [one for one in store.outcomes() if one.status in TRIGGERS]
    margins = [margin(one.deployed) for one in triggers if one.deployed is not None]
    assert margins
    assert min(one for one in margins if one is not None) >= threshold
    for one in told["caught"]:
        assert 0 < one["deviations"] <= 20  # of half of the seed inputs
        assert one["caught"] > 0.7 * one["deviations"]
    assert (copy / "repair" / "abstain-0.95.svg").read_text().startswith("<svg")

    code = ran.out[ran.out.index("import numpy") :]
    decide: dict[str, Any] = {}
    exec(code, decide)
    assert decide["decide"](np.array([0.5, 0.5 - threshold / 2, 0.0])) is None
    assert decide["decide"](np.array([0.0, 0.0, 1.0])) == 2


def test_the_snippet_in_cpp_decides_as_the_repair_does(tmp_path: Path) -> None:
    if (compiler := shutil.which("g++")) is None:
        pytest.skip("there is no g++")
    threshold, three = 0.25, [(0.5, 0.2, 0.3), (0.3, 0.55, 0.15), (0.1, 0.2, 0.7)]
    shown = "\n".join(
        f"  std::cout << decide({{{first}, {second}, {third}}}) << ' ';"
        for first, second, third in three
    )
    source = SNIPPETS["c++"].format(threshold=threshold)
    (tmp_path / "decide.cpp").write_text(
        f"#include <iostream>\n{source}\nint main() {{\n{shown}\n}}\n"
    )
    program = tmp_path / "decide"
    subprocess.run(
        [compiler, "-Wall", "-Werror", tmp_path / "decide.cpp", "-o", program], check=True
    )
    told = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    repair = Repair(3, "probabilities", below=threshold)
    for answer, decided in zip(three, told, strict=True):
        made = repair.of_scores(np.array(answer))
        abstains = made.max() == made.min()
        assert int(decided) == (-1 if abstains else made.argmax())


@pytest.mark.extended
def test_examples_are_files_with_the_originals_answers(copy: Path, tmp_path: Path) -> None:
    must_run("repair", "examples", "out", "set", home=tmp_path)
    with (tmp_path / "set" / "examples.csv").open() as file:
        rows = list(csv.DictReader(file))
    with Store.open(copy) as store:
        samples = {seed.id: store.get_sample(seed.sample) for seed in store.seeds()}
        triggers = {
            one.seed_id: (one, store.get_sample(one.trigger))
            for one in store.outcomes()
            if one.trigger is not None
        }
    assert len(rows) == len(samples) + len(triggers)
    for row in rows:
        picture = cv2.imread(str(tmp_path / "set" / row["file"]), cv2.IMREAD_UNCHANGED)
        if row["kind"] == "seed":
            expected = samples[row["seed"]]
        else:
            outcome, expected = triggers[row["seed"]]
            assert row["wanted"] == str(outcome.original_label) != row["deployed"]
        np.testing.assert_array_equal(picture.reshape(expected.shape), expected)
    again = edgeflare("repair", "examples", "out", "set", home=tmp_path)
    assert again.code == 2
    assert "isn't empty" in again.err


@pytest.mark.extended
def test_a_repaired_model_is_searched_and_told_apart(copy: Path, tmp_path: Path) -> None:
    repair = Repair(10, "probabilities", below=0.99)
    save_repair(repair, tmp_path / "r.npz")
    paused = run_with("r.npz", tmp_path, "--total-queries", 6)
    assert "repaired by r.npz" in edgeflare("show", "again", home=tmp_path).out, paused.both
    check_answers(copy, tmp_path / "again", repair)
    save_repair(repair._replace(below=0.2), tmp_path / "r.npz")
    resumed = edgeflare("resume", "again", "--total-queries", 1000, home=tmp_path)
    assert resumed.code == 2
    assert "r.npz has changed" in resumed.err
    (tmp_path / "r.npz").unlink()
    assert "r.npz is gone" in edgeflare("resume", "again", home=tmp_path).err


@pytest.mark.extended
def test_a_repaired_campaign_is_explained_but_not_repaired_again(tmp_path: Path) -> None:
    save_repair(Repair(10, "probabilities", below=0.001), tmp_path / "r.npz")
    assert run_with("r.npz", tmp_path).code == 0
    refused = edgeflare("repair", "abstain", "again", home=tmp_path)
    assert refused.code == 2
    assert "model's own answers" in refused.err
    explained = must_run("explain", "again", home=tmp_path)
    assert "counts as compression" in (explained.out)
    assert "tensors end before" in explained.out
    save_repair(Repair(10, "probabilities", below=0.002), tmp_path / "r.npz")
    changed = edgeflare("explain", "again", home=tmp_path)
    assert changed.code == 2
    assert "r.npz has changed" in changed.err


def test_repairs_that_cannot_be_made_or_used_are_told(copy: Path, tmp_path: Path) -> None:
    save_repair(Repair(4, "probabilities", below=0.1), tmp_path / "four.npz")
    (tmp_path / "text.npz").write_text("nothing")
    must_run("run", *DEMO_PAIR, "--limit", 2, *FLAGS, "--out", "few", home=tmp_path)
    refused: dict[str, Ran] = {
        "for 4 classes, and the deployed model has 10": run_with("four.npz", tmp_path),
        "is no repair that can be read": run_with("text.npz", tmp_path),
        "there is no repair": run_with("none.npz", tmp_path),
        "--variant must be": edgeflare(
            "repair", "train", "out", "--variant", "best", home=tmp_path
        ),
        "the share to catch is 0": edgeflare(
            "repair", "abstain", "out", "--catch", 0, home=tmp_path
        ),
        "a threshold needs 10 at least": edgeflare("repair", "abstain", "few", home=tmp_path),
        "of 5 seed inputs are needed": edgeflare("repair", "train", "few", home=tmp_path),
        "is an .npz file": edgeflare("repair", "train", "out", "--out", "r.bin", home=tmp_path),
        "--snippet must be": edgeflare(
            "repair", "abstain", "out", "--snippet", "go", home=tmp_path
        ),
    }
    for words, ran in refused.items():
        assert ran.code == 2, (words, ran.both)
        assert words in ran.err.replace("\n", " "), (words, ran.err)


@pytest.mark.virtual
@pytest.mark.slow
def test_a_board_repairs_as_this_machine_does(virtual_board: VirtualBoard, tmp_path: Path) -> None:
    out, seeds = tmp_path / "out", {"path": DEMO / "seeds.npz", "limit": 20}
    model = {"path": DEMO / "deployed.tflite", "options": {"delegate": False}}
    with within(virtual_board.environment):
        search(DEMO / "original.onnx", model, seeds, "virtual", strategy="dflare", folder=out)
        found = train_campaign(out, random_seeds=1)
    check_answers(out, Path(found.search.folder), load_repair(Path(found.path)))


def test_nothing_is_made_of_an_unfinished_campaign(tmp_path: Path) -> None:
    flags = (*DEMO_PAIR, "--limit", 4, *FLAGS, "--total-queries", 6)
    edgeflare("run", *flags, "--out", "out", home=tmp_path)
    for command in (("train",), ("abstain",), ("recipes",), ("examples",)):
        more = ("set",) if command == ("examples",) else ()
        ran = edgeflare("repair", *command, "out", *more, home=tmp_path)
        assert ran.code == 2
        assert "`edgeflare resume" in ran.err
    assert not (tmp_path / "set").exists()


def test_nothing_is_written_into_a_folder_that_is_no_campaign(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for command in ("train", "abstain", "recipes"):
        assert edgeflare("repair", command, "mine", home=tmp_path).code == 2
    assert not list((tmp_path / "mine").iterdir())


@pytest.mark.parametrize(
    "flags", [("train", "out", "--max-inducing", "abc"), ("abstain", "out", "--catch", "most")]
)
def test_a_share_that_is_no_number_is_told_with_its_form(tmp_path, flags) -> None:
    ran = edgeflare("repair", *flags, home=tmp_path)
    assert ran.code == 2
    assert "0.01 or 1%" in " ".join(ran.err.split())
