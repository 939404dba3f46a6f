"""Limits on what a campaign finds: what is said, and the exit code."""

from pathlib import Path

import numpy as np
import pytest
from command import DEMO, Ran, edgeflare, must_run

from edgeflare.store import SeedAnswer, SeedInput, Store
from edgeflare.types import Decision

pytestmark = pytest.mark.extended

SEEDS = 5
PAIR = f"""
[original]
path = "{DEMO / "original.onnx"}"
[deployed]
path = "{DEMO / "deployed.tflite"}"
[seeds]
path = "{DEMO / "seeds.npz"}"
limit = {SEEDS}
[search]
options = {{ crossing = "least-l2", effort = 64, tied_classes = 2 }}
"""
CROSSED = """
[limits]
max_deviation_rate = 0.05
max_seed_deviation_rate = 0.0
min_median_queries = 10
min_l2 = 50
max_severity = 1e-6
new_pairs = false
baseline = "baseline"
max_new_triggers = 0
"""


def baseline(folder: Path, *, classes: int = 10, finished: bool = True) -> Path:
    """A campaign that found nothing, over so many classes."""
    scores = np.full(classes, 1 / classes)
    with Store.create(folder, {}, environment={}) as store:
        store.add_seeds([SeedInput("one", np.zeros((28, 28, 1), np.uint8))])
        store.add_seed_answers([SeedAnswer("one", scores, scores, Decision.TIE)])
        store.state.finished = finished
    return folder


def run(home: Path, limits: str, *flags: object) -> Ran:
    (home / "campaign.toml").write_text(PAIR + limits)
    return edgeflare("run", "campaign.toml", *flags, home=home)


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    home = tmp_path_factory.mktemp("home")
    baseline(home / "baseline")
    return home, run(home, CROSSED, "--out", "crossed", "--json")


def test_a_campaign_that_crosses_its_limits_ends_with_1_and_is_whole(crossed) -> None:
    _, ran = crossed
    assert ran.code == 1, ran.err
    names = [*("max_deviation_rate", "min_median_queries", "min_l2", "max_severity", "new_pairs")]
    assert ran.json["limits_crossed"] == names
    assert f"crossed: {', '.join(names)}" in ran.sentence
    assert (ran.json["unfinished"], ran.json["found"]) == (0, SEEDS)
    told = {one["name"]: one for one in ran.json["limits"]}
    assert told["max_deviation_rate"]["value"] == ran.json["success_rate"] == 1.0
    assert told["min_median_queries"]["value"] == ran.json["queries_found"]["median"]
    assert told["new_pairs"]["value"] == len(ran.json["label_pairs"])
    assert not told["max_seed_deviation_rate"]["crossed"]
    assert not told["max_new_triggers"]["checked"]


def test_show_reports_the_same_and_ends_with_0_and_resume_with_1(crossed: tuple[Path, Ran]) -> None:
    home, ran = crossed
    shown = must_run("show", "crossed", home=home)
    states = ("crossed ", "kept ", "not checked ")
    lines = [line for line in shown.out.splitlines() if line.startswith(states)]
    assert [line.split()[0] for line in lines] == [
        *("crossed", "kept", "crossed", "crossed", "crossed", "crossed", "not")
    ]
    for line, one in zip(lines, ran.json["limits"], strict=True):
        assert line.endswith(one["words"])
    (home / "baseline").rename(home / "elsewhere")
    resumed = edgeflare("resume", "crossed", "--json", home=home)
    (home / "elsewhere").rename(home / "baseline")
    assert resumed.code == 1
    assert resumed.json["limits"] == ran.json["limits"], "it needs its baseline no more"


def test_a_paused_campaign_crosses_what_it_crosses_so_far(crossed: tuple[Path, Ran]) -> None:
    home, _ = crossed
    flags = (
        "--out", "paused", "--total-queries", "40", "--no-survey", "--concurrency", "1", "--json",
    )  # fmt: skip
    ran = run(home, "[limits]\nmax_seed_deviation_rate = 0\nmin_l2 = 50\n", *flags)
    assert ran.json["unfinished"] > 0
    assert ran.code == 1
    assert ran.json["limits_crossed"] == ["min_l2"]
    assert all("so far" in one["words"] for one in ran.json["limits"])


@pytest.mark.parametrize(
    ("limits", "key"),
    [
        ("max_deviation_rate = 5", "limits.max_deviation_rate"),
        ("max_deviations = 0.1", "limits.max_deviations"),
        ("new_pairs = false", "new_pairs"),
        ("new_pairs = false\nbaseline = 'nowhere'", "limits.baseline"),
        ("new_pairs = false\nbaseline = 'empty'", "limits.baseline"),
        ("new_pairs = false\nbaseline = 'unfinished'", "limits.baseline"),
        ("new_pairs = false\nbaseline = 'three-classes'", "limits.baseline"),
    ],
)
def test_limits_that_can_not_be_checked_are_refused_before_anything_is_made(
    tmp_path: Path, limits: str, key: str
) -> None:
    (tmp_path / "empty").mkdir()
    baseline(tmp_path / "unfinished", finished=False)
    baseline(tmp_path / "three-classes", classes=3)
    ran = run(tmp_path, f"[limits]\n{limits}\n", "--out", "made")
    assert ran.code == 2
    assert ran.err.count("edgeflare: ") == 1
    assert key in ran.sentence
    assert not (tmp_path / "made").exists()
