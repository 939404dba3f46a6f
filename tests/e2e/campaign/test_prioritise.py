"""Seeds in the order of their priority: which are taken, that nothing else changes, and how early they find."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from campaigns import all_of, found_in
from command import DEMO, Ran, edgeflare
from small_models import damaged_onnx

from edgeflare.answers.metrics import total_variation
from edgeflare.campaign.seeds import partner_samples
from edgeflare.document import Table, Text
from edgeflare.errors import UsageError
from edgeflare.reports import priority_document
from edgeflare.store import Store
from edgeflare.types import Scores, SeedInput, Status
from edgeflare_whitebox import (
    InspectedOriginal,
    PriorityComparison,
    apfd,
    order_of,
    priorities,
    prioritise_campaign,
)
from edgeflare_whitebox.stored import stored_original

SEEDS = 40


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with more seeds than there are partners, and a pair that differs on some of them."""
    home = tmp_path_factory.mktemp("prioritise")
    with np.load(DEMO / "seeds.npz") as archive:
        images, labels = archive["images"][:SEEDS], archive["labels"][:SEEDS]
    np.savez(home / "seeds.npz", images=images, labels=labels)
    damaged_onnx(home / "deployed.onnx", 0.3)
    return home


def run(home: Path, name: str, *arguments: object, survey: bool = False) -> Path:
    ran = ran_with(home, *arguments, "--out", name, survey=survey)
    assert ran.code == 0, ran.err
    return home / name


def ran_with(home: Path, *arguments: object, survey: bool = False) -> Ran:
    pair = ("--original", DEMO / "original.onnx", "--deployed", home / "deployed.onnx")
    off = ("--pursuit-queries", 0) if survey else ("--no-survey",)
    seeds = ("--seeds", home / "seeds.npz", "--timeout", 0, "--workers", 0)
    most = ("--max-queries", 1)  # so that some searches find nothing
    return edgeflare("run", *pair, *seeds, *most, *off, *arguments, home=home)


@pytest.fixture(scope="module")
def plain(home: Path) -> Path:
    return run(home, "plain", survey=True)


@pytest.fixture(scope="module")
def unordered(home: Path) -> Path:
    """The answers to the seeds alone, as they come."""
    return run(home, "unordered", "--strategy", "none")


def scores_of(folder: Path) -> dict[str, Scores]:
    """The original's probabilities on each seed, in the order of the source."""
    with Store.open(folder) as store:
        found = {one.id: one.outputs.original for one in store.seeds() if one.outputs is not None}
    assert all(isinstance(one, np.ndarray) for one in found.values())
    return found  # type: ignore[return-value]


def by(found: dict[str, float]) -> list[str]:
    """Ids by figures, the largest first; ties in their order."""
    return sorted(found, key=lambda seed_id: -found[seed_id])


def margins_of(folder: Path) -> dict[str, float]:
    sorted_ = {name: np.sort(one) for name, one in scores_of(folder).items()}
    return {name: float(one[-2] - one[-1]) for name, one in sorted_.items()}


def ids(folder: Path) -> list[str]:
    with Store.open(folder) as store:
        return [one.id for one in store.seeds()]


@pytest.mark.extended
def test_the_order_changes_nothing_of_what_a_seed_gives(home: Path, plain: Path) -> None:
    ordered = run(home, "margin", "--prioritise", "margin", survey=True)
    expected = by(margins_of(plain))
    assert ids(plain) == [f"seeds.npz:{k}" for k in range(SEEDS)]
    assert ids(ordered) == expected
    assert found_in(ordered) == found_in(plain)
    assert any(one[0] is Status.FOUND for one in found_in(plain).values())
    before, after = all_of(plain), all_of(ordered)
    assert sorted(after["surveyed"], key=str) == sorted(before["surveyed"], key=str)
    assert after["models"] == before["models"]
    with Store.open(ordered) as store, Store.open(plain) as other:
        surveyed = [one.seed_id for one in store.surveyed_seeds()]
        searched = [one.seed_id for one in store.outcomes()]
        first = partner_samples(store)
        assert first == [one.sample for one in other.seeds()][:32]
    assert set(expected[:10]) >= set(surveyed[:5])
    assert set(expected[:20]) >= set(searched[:5])


@pytest.mark.extended
def test_a_limit_takes_the_most_promising_seeds_and_finds_the_same_from_them(home, plain) -> None:
    few = run(home, "few", "--prioritise", "gini", "--limit", 6, survey=True)
    gini = {name: float(-np.sum(one**2)) for name, one in scores_of(plain).items()}
    assert ids(few) == by(gini)[:6]
    known = found_in(plain)
    assert found_in(few) == {key: known[key] for key in found_in(few)}
    assert len(found_in(few)) == 6
    notice = f"the 6 seeds are the most promising of {SEEDS} by gini: rates and means are about these, not about all"
    assert notice in all_of(few)["notices"]


def test_seeds_that_the_limit_leaves_out_are_not_copied(home: Path) -> None:
    folder = run(home, "copied", "--prioritise", "margin", "--limit", 3, "--strategy", "none")
    with Store.open(folder) as store:
        chosen = {one.sample for one in store.seeds()}
        stored = {path.stem for path in (folder / "samples").rglob("*.npy")}
        stored |= {path.stem for path in (folder / "samples").rglob("*.png")}
        assert stored == chosen | {*(partner_samples(store) or ())}
    assert len(chosen) == 3
    assert len(stored) <= 35


@pytest.mark.extended
def expected(folder: Path, measure: str) -> list[str]:
    """The order by what the library says of a campaign's seeds, in that of the source."""
    with Store.open(folder) as store:
        model = stored_original(store)
        seeds = [
            SeedInput(one.id, store.get_sample(one.sample), one.label) for one in store.seeds()
        ]
        scores = {one.id: one.outputs.original for one in store.seeds() if one.outputs is not None}
    left = iter(scores[one.id] for one in seeds)
    inside = InspectedOriginal(model.path, model.graph, model.spec, model.label)
    found = priorities(measure, seeds, lambda some: [next(left) for _ in some], inside)
    assert len(np.unique(found)) > 3
    return [seeds[place].id for place in order_of(found)]


def test_farthest_activations_first(home: Path, unordered: Path) -> None:
    folder = run(home, "surprise", "--prioritise", "surprise", "--strategy", "none")
    assert ids(folder) == expected(unordered, "surprise") != ids(unordered)


@pytest.mark.torch
def test_rarest_combinations_first(home: Path, unordered: Path) -> None:
    pytest.importorskip("torch", reason="it is in the extra inspection")
    folder = run(home, "rarity", "--prioritise", "rarity", "--strategy", "none")
    assert ids(folder) == expected(unordered, "rarity") != ids(unordered)
    assert not prioritise_campaign(unordered, measures=["rarity"]).left_out


@pytest.mark.slow
def test_a_control_of_ordered_seeds_finds_what_that_of_plain_ones_does(home: Path) -> None:
    control = ("--control", "--max-queries", 10)
    plain = run(home, "plain-control", *control)
    ordered = run(home, "ordered-control", *control, "--prioritise", "margin")
    assert ids(ordered / "control") == ids(ordered) != ids(plain)
    assert found_in(ordered / "control") == found_in(plain / "control")


@pytest.mark.extended
def test_drift_orders_the_searches_alone(home: Path, plain: Path) -> None:
    folder = run(home, "drift", "--prioritise", "drift", "--concurrency", 1, survey=True)
    assert ids(folder) == ids(plain)
    assert found_in(folder) == found_in(plain)
    with Store.open(folder) as store:
        drift: dict[str, list[float]] = {name: [] for name in ids(folder)}
        for one in store.survey(phase="survey"):
            assert isinstance(one.original, np.ndarray)
            assert isinstance(one.deployed, np.ndarray)
            drift[one.seed_id].append(total_variation(one.original, one.deployed))
        searched = [one.seed_id for one in store.outcomes()]
    assert searched == by({name: float(np.mean(one or -1)) for name, one in drift.items()})


def test_what_cant_be_ordered_is_refused_before_anything_is_made(home: Path) -> None:
    ran = ran_with(home, "--prioritise", "drift", "--out", "none")
    assert ran.code == 2
    assert "--prioritise drift orders" in ran.err
    ran = ran_with(home, "--prioritise", "best", "--out", "none")
    assert ran.code == 2
    assert "--prioritise" in ran.err
    assert not (home / "none").exists()


@pytest.mark.extended
def test_how_early_orders_find(plain: Path) -> None:
    found = prioritise_campaign(plain, measures=["margin", "gini", "surprise", "drift"])
    assert found == prioritise_campaign(plain, measures=["margin", "gini", "surprise", "drift"])
    assert json.loads(json.dumps(found.to_json()))["seeds"] == SEEDS
    assert not found.left_out
    kinds = {one.kind: one for one in found.findings}
    trigger = kinds["trigger"]
    assert [one.measure for one in trigger.orders] == [
        *("margin", "gini", "surprise", "drift", "random")
    ]
    outcomes = found_in(plain)
    searched = [name for name in ids(plain) if outcomes[name, ""][0] is not Status.SEED_DEVIATES]
    hits = [place for place, name in enumerate(searched) if outcomes[name, ""][0] is Status.FOUND]
    assert (trigger.seeds, trigger.found) == (len(searched), len(hits))
    assert 0 < len(hits) < len(searched)
    spent = [outcomes[name, ""][3] for name in searched]
    varies = len(set(spent)) > 1
    assert (trigger.unit, trigger.budget) == (
        ("device queries", sum(spent)) if varies else ("seeds", len(searched))
    )
    margins = margins_of(plain)
    order = order_of(np.array([margins[name] for name in searched]))
    assert trigger.orders[0].apfd == pytest.approx(apfd(order, hits))
    assert trigger.orders[-1].apfd == pytest.approx(0.5, abs=0.05)
    assert trigger.orders[-1].p is None
    assert all(one.p is not None and 1 / 201 <= one.p <= 1 for one in trigger.orders[:-1])
    assert list(trigger.orders[0].within) == ["0.1", "0.25", "0.5"]
    for kind in kinds.keys() - {"trigger"}:
        assert kinds[kind].unit == "seeds"
        assert "drift" not in [one.measure for one in kinds[kind].orders]


@pytest.mark.extended
def test_what_cant_be_computed_is_left_out_with_its_reason(home, plain, tmp_path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(plain, copy)
    with Store.open(copy) as store:
        models = store.models
        gone = {**models["original"], "path": str(tmp_path / "gone.onnx")}
        store.set_models(gone, models["deployed"])
    found = prioritise_campaign(copy, measures=["surprise", "margin"], shuffles=1, random_seed=5)
    assert list(found.left_out) == ["surprise"]
    assert f"{tmp_path / 'gone.onnx'} isn't there" in found.left_out["surprise"]
    (tmp_path / "gone.onnx").write_bytes(b"another")
    found = prioritise_campaign(copy, measures=["surprise"], shuffles=1)
    assert "gone.onnx" in found.left_out["surprise"]
    assert [one.measure for one in found.findings[0].orders] == ["random"]
    with pytest.raises(UsageError, match="1 shuffle"):
        prioritise_campaign(plain, shuffles=0)
    with pytest.raises(UsageError, match="measure best"):
        prioritise_campaign(plain, measures=["best"])  # type: ignore[list-item]
    without = run(home, "without", "--strategy", "none", "--limit", 2)
    assert "scores of both" in prioritise_campaign(without, measures=["drift"]).left_out["drift"]


@pytest.mark.extended
def test_the_tables_say_which_order_is_best(plain: Path) -> None:
    found = prioritise_campaign(plain, measures=["margin", "gini"])
    blocks = priority_document(found)
    tables = [one for one in blocks if isinstance(one, Table)]
    texts = [one.text for one in blocks if isinstance(one, Text)]
    assert len(tables) == len(found.findings)
    assert any("random order" in one for one in texts)
    assert tables[0].cells(tables[0].shown)[-1][0] == "random"
    nothing = PriorityComparison("c", 3, 1, 0, (), {})
    (only,) = priority_document(nothing)
    assert only.text.startswith("Nothing was found")
