"""``edgeflare inspect classes``: a deployment that damaged one class, in the terminal, as JSON and on the page."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from browser import PHONE, Browser
from command import DEMO_PAIR, Ran, edgeflare, must_run
from onnx import helper
from onnx_nets import saved
from stored_json import changed_result

from edgeflare.models import spec_from_json
from edgeflare.models.tensors import open_graph
from edgeflare.store import Store
from edgeflare_whitebox import (
    ActivationProbabilities,
    activations_of,
    classes_of_campaign,
    compare_deployment,
    pre_activation_layers,
    stored_classes,
)

CLASSES, EACH, DAMAGED = 5, 30, 3
NAMES = ("owl", "cat", "dog", "elk", "bee")


def patterns() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(64, CLASSES)).astype(np.float32)


def net(path: Path, weights: np.ndarray) -> Path:
    """Scores of images 8 x 8 by how alike they are to the weights of each class."""
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    hidden = np.concatenate([patterns(), -patterns()], axis=1)
    return saved(path, nodes, {"w": hidden, "v": weights}, [1, 1, 8, 8])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign ``c`` whose deployed model has coarse weights of one class in the last layer."""
    home = tmp_path_factory.mktemp("classes")
    last = np.concatenate([np.eye(CLASSES), -np.eye(CLASSES)]).astype(np.float32)
    original = net(home / "original.onnx", last)
    last[:, DAMAGED] = np.round(last[:, DAMAGED] / 3) * 3  # a step so coarse that both become 0
    deployed = net(home / "deployed.onnx", last)
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(CLASSES), EACH)
    images = 120 + 16 * patterns().T[labels].reshape(-1, 8, 8) + rng.normal(0, 50, (150, 8, 8))
    np.savez(home / "seeds.npz", images=np.clip(images, 0, 255).astype(np.uint8), labels=labels)
    must_run(
        *("run", "--original", original, "--deployed", deployed, "--seeds", "seeds.npz"),
        *(
            "--input", "mean=120", "--input", "std=64", "--strategy", "none", "--no-survey",
            "--out", "c",
        ),
        home=home,
    )  # fmt: skip
    (home / "names.txt").write_text("\n".join(NAMES))
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    for name in ("c", "names.txt", "seeds.npz"):
        copy: Callable[..., Any] = shutil.copytree if name == "c" else shutil.copy
        copy(made / name, tmp_path / name)
    return tmp_path


def inspect(home: Path, *more: object) -> Ran:
    return edgeflare("inspect", "classes", "c", *more, home=home)


def test_the_damaged_class_is_named_first(home: Path) -> None:
    ran = inspect(home, "--class-names", "names.txt")
    assert ran.code == 0, ran.err
    found = inspect(home, "--json").json
    first = found["changes"][0]
    assert first["label"] == DAMAGED
    sentence = next(line for line in ran.out.splitlines() if line.startswith("Class "))
    assert f"{first['moved']} of {found['moved']}" in sentence
    assert first["original_recall"] > 0.8
    assert first["moved"] == found["moved"]
    assert {DAMAGED} <= {found["pairs"][0]["label"], found["pairs"][0]["said"]}


def test_the_figures_are_those_of_the_library(home: Path) -> None:
    found = inspect(home, "--json").json
    with Store.open(home / "c") as store:
        seeds = list(store.seeds())
        samples = list(store.seed_samples())
        spec = spec_from_json(store.models["original"]["input"])
        path = Path(store.models["original"]["path"])
    sides = [
        np.stack([getattr(one.outputs, which) for one in seeds])
        for which in ("original", "deployed")
    ]
    labels = np.array([one.label for one in seeds])
    compared = compare_deployment(*sides, labels)
    assert found["changes"] == json.loads(json.dumps([vars(one) for one in compared.classes]))
    assert found["tested_pairs"] == compared.tested_pairs == CLASSES * (CLASSES - 1)
    graph = open_graph(path, "onnx", {})
    layers = pre_activation_layers(graph)
    assert layers == ("hidden", "logits")
    probabilities = ActivationProbabilities(layers, CLASSES)
    probabilities.update(activations_of(graph, spec, samples, layers))
    assert found["suspects"]
    for one in found["suspects"]:
        assert one["distance"] == probabilities.distances[one["first"], one["second"]]
    table = found["decisions"]
    for which, scores in zip(("original", "deployed"), sides, strict=True):
        for label, row in zip(table["classes"], table[which], strict=True):
            decided = scores[labels == label].argmax(axis=1)
            assert row == [np.count_nonzero(decided == other) for other in table["classes"]]
    for one in found["examples"]:
        seed = seeds[one["place"]]
        assert (one["id"], one["sample"], one["label"]) == (seed.id, seed.sample, seed.label)
        assert one["original"] != one["deployed"]


@pytest.mark.extended
def test_the_page_has_tables_decisions_and_seeds(home: Path, window: Browser) -> None:
    assert edgeflare("report", "c", home=home).code == 0
    page = home / "c" / "report.html"
    assert 'id="classes"' not in page.read_text()
    found = inspect(home, "--json").json
    assert edgeflare("report", "c", "--class-names", "names.txt", home=home).code == 0
    html = page.read_text(encoding="utf-8")
    section = html[html.index('<section class="panel" id="classes"') :]
    section = section[: section.index("</section>")]
    assert "Class elk" in section
    assert section.count('alt="seed ') == len({one["examples"][0] for one in found["pairs"]})
    row, column = (found["decisions"]["classes"].index(one) for one in (DAMAGED, DAMAGED))
    before, after = (found["decisions"][which][row][column] for which in ("original", "deployed"))
    assert f"{after} ({after - before:+})" in section
    themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for theme in themes:
        window.theme(theme)
        window.open(page)
        assert window.axe() == []
        assert window.complaints() == []
        window.show("decisions-title", f"classes-{theme}")
    window.resize(PHONE)
    assert window.overflow() <= 0


def test_other_profiling_inputs_change_the_distances_alone(home: Path) -> None:
    with np.load(home / "seeds.npz") as archive:
        np.savez(home / "training.npz", images=archive["images"][::2])
    own = inspect(home, "--json").json
    other = inspect(home, "--profile", "training.npz", "--layer", "logits", "--json").json
    assert (own["profiled"], other["profiled"]) == (150, 75)
    assert own["changes"] == other["changes"]
    assert own["suspects"] != other["suspects"]
    assert "75 profiling inputs" in inspect(home, "--profile", "training.npz").out


def test_few_inputs_tell_nothing_of_pairs(tmp_path: Path) -> None:
    must_run(
        "run", *DEMO_PAIR, "--limit", 12, "--strategy", "none", "--no-survey", "--out", "c", home=tmp_path
    )  # fmt: skip
    ran = inspect(tmp_path)
    assert "original's pairs: add" in ran.out
    assert "Most likely" not in ran.out
    found = inspect(tmp_path, "--json").json
    assert (found["suspects"], found["pairs"], found["enough"]) == ([], [], 0)


@pytest.mark.parametrize("damage", ["a row short", "classes", "p"])
def test_a_damaged_result_is_told(home: Path, damage: str) -> None:
    assert inspect(home).code == 0
    with changed_result(home / "c", "classes") as result:
        if damage == "p":
            result["changes"][0]["p"] = 7
        elif damage == "classes":
            result["decisions"]["classes"] = list(range(100))
        else:
            result["decisions"]["original"].pop()
    ran = edgeflare("report", "c", home=home)
    assert ran.code == 2
    assert "the result 'classes'" in ran.sentence


def test_a_seed_whose_file_is_gone_has_no_picture(home: Path) -> None:
    assert inspect(home).code == 0
    with changed_result(home / "c", "classes") as result:
        for one in result["examples"]:
            one["sample"] = "0" * 64
    assert edgeflare("report", "c", home=home).code == 0
    text = (home / "c" / "report.html").read_text(encoding="utf-8")
    assert 'alt="seed ' not in text


def _texts(store: Store) -> None:
    models = store.models
    models["original"]["output"]["kind"] = "transcript"
    store.set_models(models["original"], models["deployed"])


@pytest.mark.parametrize(
    ("spoil", "flags", "words"),
    [
        (_texts, (), "returns transcripts"),
        (None, ("--layer", "nothing"), "no tensor 'nothing'"),
        (None, ("--profile", "nothing"), "seeds"),
        (None, ("--original", "nothing.onnx"), "isn't there"),
        (None, ("--class-names", "nothing.txt"), "nothing.txt"),
    ],
)
def test_what_can_not_be_inspected_is_told(home, spoil, flags, words) -> None:
    if spoil is not None:
        with Store.open(home / "c") as store:
            spoil(store)
    ran = inspect(home, *flags)
    assert (ran.code, ran.out) == (2, ""), ran.both
    assert words in ran.sentence


def change(folder: Path, statement: str, *values: object) -> None:
    """Change the campaign's database as nothing in EdgeFlare does."""
    with closing(sqlite3.connect(folder / "campaign.sqlite")) as connection, connection:
        connection.execute(statement, values)


def test_some_seeds_without_labels_are_told(home: Path) -> None:
    change(home / "c", "update seeds set label = null where position < 3")
    change(home / "c", "update seeds set label = 99 where position = 3")
    found = classes_of_campaign(home / "c")
    assert not found.labelled
    assert any("150 without" in one for one in found.notices)


def test_of_several_devices_the_answers_are_those_of_the_first(home: Path) -> None:
    change(home / "c", "update seed_answers set replica = 'a'")
    with Store.open(home / "c") as store:
        store.state.replicas = ["a", "b"]
    found = classes_of_campaign(home / "c")
    assert found.inputs == 150
    assert any("2 devices" in one for one in found.notices)


def replace_answers(folder: Path, which: str, scores: np.ndarray, seeds: int) -> None:
    """Write other scores over a model's answers to the first seeds."""
    statement = f"update seed_answers set {which} = ? where seed <= ?"
    change(folder, statement, scores.astype("<f8").tobytes(), seeds)


def test_scores_beyond_1_can_be_read_back(home: Path) -> None:
    """As of a user who states that logits are probabilities."""
    replace_answers(home / "c", "original", np.arange(5.0) - 1, 70)
    replace_answers(home / "c", "deployed", np.arange(5.0)[::-1], 60)
    found = classes_of_campaign(home / "c")
    with Store.open(home / "c") as store:
        assert stored_classes(store) == found
    assert edgeflare("report", "c", home=home).code == 0


def test_answers_that_are_not_finite_are_left_out(home: Path) -> None:
    replace_answers(home / "c", "deployed", np.full(5, np.nan), 20)
    found = classes_of_campaign(home / "c")
    words = "seeds left out on which a model answers NaN or infinity"
    assert any(words in one for one in found.notices)
    assert 120 < found.inputs < 150
    replace_answers(home / "c", "deployed", np.full(5, np.inf), 1000)
    ran = inspect(home)
    assert ran.code == 2
    assert "models answered" in ran.sentence


def test_answers_of_several_sizes_are_damage(home: Path) -> None:
    for which in ("original", "deployed"):
        replace_answers(home / "c", which, np.array([0.5, 0.5]), 3)
    ran = inspect(home)
    assert ran.code == 2
    assert "is damaged" in ran.sentence


def test_seeds_without_labels_are_compared_by_decisions(made: Path, tmp_path: Path) -> None:
    with np.load(made / "seeds.npz") as archive:
        np.savez(tmp_path / "seeds.npz", images=archive["images"])
    must_run(
        *("run", "--original", made / "original.onnx", "--deployed", made / "deployed.onnx"),
        *(
            "--seeds", "seeds.npz", "--input", "mean=120", "--input", "std=64", "--strategy",
            "none", "--no-survey",
        ),
        *("--out", "c"),
        home=tmp_path,
    )  # fmt: skip
    found = inspect(tmp_path, "--json").json
    assert found["changes"][0]["label"] == DAMAGED
    assert not found["labelled"]
    assert (found["biases"], found["evaluations"]) == ([], [])
    text = inspect(tmp_path).out
    assert "5 classes, without" in text
    assert "either model takes" in text
