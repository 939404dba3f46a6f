"""``compare``: candidates are ranked by how hard they are to make deviate."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from command import DEMO, Ran, edgeflare, must_run
from small_models import prune

pytestmark = pytest.mark.extended

ORIGINAL = DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist" / "lenet5.onnx"
SHARES = {"fifth": 0.2, "two-fifths": 0.4, "three-fifths": 0.6, "four-fifths": 0.8, "most": 0.95}
PAIR = ("--original", ORIGINAL, "--seeds", DEMO / "seeds.npz", "--timeout", 0)
REPEATABLE = (
    *("--option", "crossing=least-l2", "--option", "effort=16"),
    *("--option", "tied_classes=2", "--option", "candidates=1"),
)


FLAGS = (*PAIR, *REPEATABLE, "--limit", 12, "--device-budget", 3)


class Five(NamedTuple):
    home: Path
    out: Path
    models: dict[str, Path]
    ran: Ran


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Five:
    """Five prunings of one network, named in no order, and compared."""
    home = tmp_path_factory.mktemp("five")
    models = {name: prune(ORIGINAL, home / f"{name}.onnx", share) for name, share in SHARES.items()}
    out = home / "out"
    ran = edgeflare("compare", *sorted(models.values()), *FLAGS, "--out", out, "--json", home=home)
    return Five(home, out, models, ran)


def test_five_prunings_are_ranked_in_the_order_of_their_damage(five: Five) -> None:
    assert five.ran.code == 0, five.ran.err
    said = five.ran.json
    assert said["measure"] == "disagreement"
    assert [one["name"] for one in said["candidates"]] == list(SHARES)
    verdicts = {(one["first"], one["second"]): one["verdict"] for one in said["duels"]}
    assert len(verdicts) == 10
    assert all(verdict in ("tie", first) for (first, _), verdict in verdicts.items())
    assert verdicts["fifth", "three-fifths"] == "fifth"
    assert verdicts["two-fifths", "most"] == "two-fifths"


def test_a_model_against_itself_is_a_tie_whatever_the_campaigns_seed(five, tmp_path) -> None:
    copy = Path(shutil.copy(five.models["two-fifths"], tmp_path / "copy.onnx"))
    own = five.out / "two-fifths"
    one = must_run("compare", own, copy, "--out", "a", "--json", home=tmp_path)
    (duel,) = one.json["duels"]
    assert (duel["difference"], duel["interval"], duel["verdict"]) == (0, [0, 0], "tie")
    assert [each["place"] for each in one.json["candidates"]] == [1, 1]
    assert "12 seeds don't" in one.json["verdict"]

    run = ("run", "--deployed", copy, *FLAGS, "--seed", 77, "--out", "b")
    assert edgeflare(*run, home=tmp_path).code == 0
    other = must_run("compare", own, "b", "--json", home=tmp_path)
    (duel,) = other.json["duels"]
    assert duel["difference"] != 0
    assert duel["verdict"] == "tie"
    assert any("different seeds" in note for note in other.json["notes"])


def test_one_that_cannot_be_loaded_is_reported_and_the_others_are_ranked(five, tmp_path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    folders = [five.out / "most", five.out / "fifth"]
    ran = edgeflare("compare", *folders, five.models["four-fifths"], "broken.onnx", home=tmp_path)
    assert ran.code == 3
    assert ran.out.index("Hardest to make deviate is fifth") < ran.out.index("not ranked: broken: ")
    assert "broken.onnx" in ran.out.split("not ranked: ")[1]
    assert (tmp_path / "comparisons").is_dir()


@pytest.mark.slow
def test_the_papers_measure_has_the_papers_search(five: Five, tmp_path: Path) -> None:
    models = [five.models["most"], five.models["fifth"]]
    flags = (*PAIR, "--limit", 8, "--measure", "queries", "--max-queries", 60, "--out", "out")
    ran = must_run("compare", *models, *flags, "--json", home=tmp_path)
    assert [one["name"] for one in ran.json["candidates"]] == ["fifth", "most"]
    assert ran.json["measure"] == "queries"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([DEMO / "deployed.tflite"], "two candidates"),
        ([DEMO / "deployed.tflite", DEMO / "original.tflite"], "--original and --seeds"),
        ([DEMO / "deployed.tflite", DEMO / "original.tflite", *PAIR[:2]], "--original MODEL"),
        ([DEMO / "deployed.tflite", DEMO / "seeds.npz", *PAIR], "tell the runtime"),
        ([DEMO / "deployed.tflite", DEMO / "original.tflite", *PAIR, "--level", 2], "level is 2"),
        ([DEMO / "deployed.tflite", "gone.onnx", *PAIR], "model file"),
        (
            [DEMO / "deployed.tflite", DEMO / "original.tflite", *PAIR, "--measure", "x"],
            "measure x",
        ),
        ([".", "."], "campaign folder"),
    ],
)
def test_what_is_wrong_is_reported_in_one_sentence(tmp_path, arguments, said) -> None:
    ran = edgeflare("compare", *arguments, home=tmp_path)
    assert ran.code == 2
    assert said in ran.sentence
    assert not (tmp_path / "comparisons").exists()
