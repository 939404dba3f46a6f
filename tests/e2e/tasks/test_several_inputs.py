"""Campaigns with models of two inputs: one is searched, the other is fixed by a file."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from command import Ran, edgeflare, must_run
from onnx import TensorProto, helper
from small_models import save_onnx

from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.store import Store
from edgeflare.types import Decision

SIDES = ("original", "deployed")
CONTEXT = np.array([[0.0, 0.25, -0.25, 0.0]])


def classifier(path: Path, wrong: float = 0.0) -> Path:
    """Softmax of four linear scores of pixels [1, 8, 8, 1], plus the input ``context`` [1, 4]."""
    weights = np.random.default_rng(7).normal(0, 0.5, (64, 4))
    weights += np.random.default_rng(8).normal(0, wrong, weights.shape)
    context, image, scores = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("context", [1, 4]), ("image", [1, 8, 8, 1]), ("scores", [1, 4]))
    )
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["own"]),
        helper.make_node("Add", ["own", "context"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=1),
    ]
    constants = {"weights": weights.astype(np.float32)}
    return save_onnx(path, nodes, [context, image], [scores], constants)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, eight seeds and the file of fixed inputs; no test changes them."""
    folder = tmp_path_factory.mktemp("two")
    classifier(folder / "original.onnx")
    classifier(folder / "deployed.onnx", wrong=0.05)
    images = np.random.default_rng(3).integers(0, 256, (8, 8, 8), np.uint8)
    np.savez(folder / "seeds.npz", images=images)
    np.savez(folder / "fixed.npz", context=CONTEXT)
    return folder


def run(home: Path, out: Path, *more: object) -> Ran:
    models = ("--original", home / "original.onnx", "--deployed", home / "deployed.onnx")
    return edgeflare(
        *("run", *models, "--seeds", home / "seeds.npz", "--out", out),
        *("--input", "scale=1/255", "--workers", 0, "--no-survey", "--json", *more),
        home=out.parent,
    )


@pytest.mark.extended
def test_one_input_is_searched_and_the_file_is_part_of_the_campaign(home, tmp_path) -> None:
    fixed = tmp_path / "fixed.npz"
    np.savez(fixed, context=CONTEXT)
    ran = run(home, tmp_path / "out", "--fixed-inputs", fixed, "--total-queries", 15)
    assert ran.code == 0, ran.both
    with Store.open(tmp_path / "out") as store:
        for model in store.models.values():
            assert model["input"]["shape"] == [1, 8, 8, 1]
            assert model["fixed_inputs"]["name"] == "fixed.npz"
        assert any(one.trigger is not None for one in store.outcomes())
    again = edgeflare("replay", "out", home=tmp_path)
    assert again.code in (0, 1), again.both
    assert "fixed inputs" not in again.err
    np.savez(fixed, context=-CONTEXT)
    refused = edgeflare("resume", "out", home=tmp_path)
    assert refused.code == 2, refused.both
    assert f"fixed inputs {fixed}" in refused.sentence
    replayed = edgeflare("replay", "out", home=tmp_path)
    assert f"fixed inputs {fixed}" in " ".join(replayed.err.split())
    fixed.unlink()
    assert f"{fixed} is gone" in edgeflare("resume", "out", home=tmp_path).sentence


def test_what_the_other_input_is_given_changes_the_answers(home: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "far.npz", context=[[0.0, 1000.0, 0.0, 0.0]])
    ran = run(home, tmp_path / "out", "--fixed-inputs", tmp_path / "far.npz", "--strategy", "none")
    assert ran.code == 0, ran.both
    with Store.open(tmp_path / "out") as store:
        answers = [outputs for one in store.seeds() if (outputs := one.outputs) is not None]
    assert len(answers) == 8
    assert all(np.argmax(one.original) == 1 for one in answers)  # type: ignore[arg-type]


def stated_rows(path: Path, count: int) -> Path:
    """Random contexts of so many of the seeds, in another order than theirs."""
    rng = np.random.default_rng(1)
    rows, order = rng.normal(0, 3, (8, 1, 4)), rng.permutation(count)
    np.savez(path, context=rows[order], seeds=[f"seeds.npz:{one}" for one in order])
    return path


class Alone:
    """Both models of a folder, asked by onnxruntime alone with the rows of a file."""

    def __init__(self, home: Path, rows: Path) -> None:
        with np.load(rows) as given:
            self.rows = dict(zip(given["seeds"], given["context"].astype(np.float32), strict=True))
        self.models = [onnxruntime.InferenceSession(home / f"{one}.onnx") for one in SIDES]

    def answers(self, sample: np.ndarray, seed: str) -> list[np.ndarray]:
        given = {"image": sample[None] / np.float32(255), "context": self.rows[seed]}
        return [one.run(None, given)[0][0] for one in self.models]

    def check_triggers(self, store: Store, seed_of: Mapping[str, str] | None = None) -> int:
        """Check both models' answers to the triggers, and return their number."""
        found = [one for one in store.outcomes() if one.trigger is not None]
        for one in found:
            seed = one.seed_id if seed_of is None else seed_of[one.seed_id]
            alone = self.answers(store.get_sample(one.trigger or ""), seed)
            np.testing.assert_allclose([one.original, one.deployed], alone, atol=1e-6)  # type: ignore[arg-type]
        return len(found)


def test_each_seed_is_asked_about_with_inputs_of_its_own(home: Path, tmp_path: Path) -> None:
    alone = Alone(home, fixed := stated_rows(tmp_path / "rows.npz", 8))
    must_run(
        *("run", "--original", home / "original.onnx", "--deployed", home / "deployed.onnx"),
        *("--seeds", home / "seeds.npz", "--input", "scale=1/255", "--out", "out", "--json"),
        *("--fixed-inputs", fixed, "--max-queries", 60, "--workers", 2, "--limit", 7),
        home=tmp_path,
    )
    with Store.open(tmp_path / "out") as store:
        assert alone.check_triggers(store) >= 5
        assert not store.state.partner_answers  # of an input that is no seed
        surveyed = SurveyInputs.begin(store, store.setting("survey", "families"))
        asked: list[tuple[str, np.ndarray, object]] = [
            (one.id, store.get_sample(one.sample), one.outputs[:2])  # type: ignore[index]
            for one in store.seeds()
        ]
        asked += [
            (one.seed_id, surveyed.sample(one), (one.original, one.deployed))
            for one in store.survey()
        ]
        for seed, sample, stored in asked:
            np.testing.assert_allclose(stored, alone.answers(sample, seed), atol=1e-6)  # type: ignore[arg-type]
    assert edgeflare("shrink", "out", home=tmp_path).code in (0, 1)
    with Store.open(tmp_path / "out" / "shrunk") as store:
        assert alone.check_triggers(store, store.state.seed_origins)
    for source in ("out", "out/shrunk"):
        assert edgeflare("replay", source, "--out", "again", home=tmp_path).code in (0, 1)
        with Store.open(tmp_path / "again") as store:
            known = [one for one in store.seeds() if one.id.startswith("trigger")]
            assert known
            assert all(one.outputs and one.outputs.decision is Decision.DEVIATION for one in known)
        shutil.rmtree(tmp_path / "again")


@pytest.mark.extended
def test_triggers_of_another_device_go_with_their_rows(home: Path, tmp_path: Path) -> None:
    alone = Alone(home, fixed := stated_rows(tmp_path / "rows.npz", 8))
    (tmp_path / "campaign.toml").write_text(
        'devices = ["local", "local"]\nfleet.mode = "replicate"\nsearch.strategy = "boundary"\n'
        'workers = 0\nsurvey.enabled = false\nout = "out"\n'
        + "".join(
            f'[{one}]\npath = "{home / one}.onnx"\nfixed_inputs = "{fixed}"\ninput.scale = "1/255"\n'
            for one in SIDES
        )
        + f'[seeds]\npath = "{home / "seeds.npz"}"\n'
    )
    must_run("run", "campaign.toml", home=tmp_path)
    with Store.open(tmp_path / "out") as store:
        assert alone.check_triggers(store)
        for one in store.replays():
            deployed = alone.answers(store.get_sample(one.trigger), one.seed_id)[1]
            np.testing.assert_allclose(one.deployed, deployed, atol=1e-6)  # type: ignore[arg-type]


def test_what_feeds_both_models_is_told_with_the_rows(home: Path, tmp_path: Path) -> None:
    alone = Alone(home, fixed := stated_rows(tmp_path / "rows.npz", 8))
    with np.load(home / "seeds.npz") as given:
        images = given["images"]
    labels = [
        int(np.argmax(alone.answers(image[..., None], f"seeds.npz:{place}")[0]))
        for place, image in enumerate(images)
    ]
    np.savez(tmp_path / "seeds.npz", images=images, labels=labels)
    models = (home / "original.onnx", home / "deployed.onnx", "seeds.npz")
    flags = ("--fixed-inputs", fixed, "--input", "scale=1/255", "--json")
    ran = must_run("inputs", *models, *flags, home=tmp_path)
    assert ran.json["inputs"]["deployed"]["options"] == {"scale": "1/255"}
    assert ran.json["ruled_out"]["accuracy"]["original"] == 1


def drifting(path: Path, points: int | None, drift: float = 0.0) -> Path:
    """Points [`points`, 4] moved by the mean of pixels [1, 8, 8, 1]; None: any number of them."""
    image, given, moved = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (
            ("image", [1, 8, 8, 1]),
            ("points", [points, 4]),
            ("moved", [points, 4]),
        )
    )
    nodes = [
        helper.make_node("ReduceMean", ["image"], ["mean"], keepdims=0),
        helper.make_node("Add", ["mean", "drift"], ["far"]),
        helper.make_node("Add", ["points", "far"], ["moved"]),
    ]
    constants = {"drift": np.array(drift, np.float32)}
    return save_onnx(path, nodes, [image, given], [moved], constants)


@pytest.mark.parametrize(("points", "code"), [(9, 0), (None, 2)])
def test_an_output_of_several_samples_is_told_from_one_of_many_points(
    home: Path, tmp_path: Path, points: int | None, code: int
) -> None:
    models = [
        drifting(tmp_path / f"{one}.onnx", points, drift)
        for one, drift in zip(SIDES, (0.0, 0.5), strict=True)
    ]
    np.savez(tmp_path / "fixed.npz", points=np.ones((9, 4)))
    ran = edgeflare(
        *("run", "--original", models[0], "--deployed", models[1], "--seeds", home / "seeds.npz"),
        *("--input", "scale=1/255", "--fixed-inputs", "fixed.npz", "--task", "vector"),
        *("--tolerance", 1, "--strategy", "none", "--no-survey"),
        home=tmp_path,
    )
    assert ran.code == code, ran.both
    if code:
        assert "output 'moved'" in ran.sentence


def stereo(path: Path, wrong: float = 0.0) -> Path:
    """Softmax of four scores of the difference of two pictures [1, 3, 8, 8]."""
    weights = np.random.default_rng(7).normal(0, 0.5, (192, 4))
    weights += np.random.default_rng(8).normal(0, wrong, weights.shape)
    left, right, scores = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("left", [1, 3, 8, 8]), ("right", [1, 3, 8, 8]), ("scores", [1, 4]))
    )
    nodes = [
        helper.make_node("Sub", ["left", "right"], ["apart"]),
        helper.make_node("Flatten", ["apart"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=1),
    ]
    constants = {"weights": weights.astype(np.float32)}
    return save_onnx(path, nodes, [right, left], [scores], constants)


def run_pairs(home: Path, *more: object) -> Ran:
    """Run two stereo models, of which the deployed one is a little wrong, on six pairs of pictures."""
    models = [stereo(home / "original.onnx"), stereo(home / "deployed.onnx", 0.05)]
    images = np.random.default_rng(3).integers(0, 256, (6, 8, 16, 3), np.uint8)
    np.savez(home / "pairs.npz", images=images)
    np.savez(home / "single.npz", images=images[:, :, :8])
    seeds = () if "--seeds" in more else ("--seeds", "pairs.npz")
    names = () if any("input-name" in str(one) for one in more) else ("--input-name", "left, right")
    return edgeflare(
        *("run", "--original", models[0], "--deployed", models[1], "--input", "scale=1/255"),
        *(*seeds, *names, *more),
        home=home,
    )


def test_pictures_beside_each_other_are_searched_together(tmp_path: Path) -> None:
    more = ("--out", "out", "--no-survey", "--max-queries", 60, "--workers", 0)
    ran = run_pairs(tmp_path, *more)
    assert ran.code == 0, ran.both
    sessions = [onnxruntime.InferenceSession(tmp_path / f"{one}.onnx") for one in SIDES]
    with Store.open(tmp_path / "out") as store:
        found = [one for one in store.outcomes() if one.trigger is not None]
        for one in found:
            image = store.get_sample(one.trigger or "").transpose(2, 0, 1)[None] / np.float32(255)
            parts = {"left": image[..., :8], "right": image[..., 8:]}
            answers = [each.run(None, parts)[0][0] for each in sessions]
            np.testing.assert_allclose((one.original, one.deployed), answers, atol=1e-6)  # type: ignore[arg-type]
    assert len(found) >= 5


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--input", "resize=bilinear"), "neither resized nor turned"),
        (("--seeds", "single.npz"), "pictures of 2 inputs beside each other, together 8 x 16"),
        (
            ("--resize", "letterbox"),
            "the pictures of inputs .* are not resized: leave --resize out",
        ),
        (("--task", "detection"), "boxes don't tell which of the pictures beside each other"),
        (("--input-name", "left,rigth"), "has no input 'rigth'; it has right, left"),
    ],
)
def test_what_pictures_beside_each_other_cannot_be_is_refused(tmp_path, more, words) -> None:
    refused = run_pairs(tmp_path, *more)
    assert refused.code == 2, refused.both
    assert re.search(words, refused.sentence), refused.sentence


def test_a_seed_without_a_row_is_named_and_nothing_is_left(home: Path, tmp_path: Path) -> None:
    refused = run(home, tmp_path / "out", "--fixed-inputs", stated_rows(tmp_path / "r.npz", 6))
    assert refused.code == 2, refused.both
    assert "8 (seeds.npz:6; seeds.npz:7)" in refused.sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arrays", "more", "words"),
    [
        (None, (), r"has 2 inputs .* context \(1 x 4, float32\), image \(1 x 8 x 8 x 1, float32\)"),
        (None, ("--input-name", "image"), "nothing is given for context .*--fixed-inputs FILE.npz"),
        ({"contxt": CONTEXT}, (), "has no input 'contxt'; it has context, image"),
        ({"context": CONTEXT[0]}, (), "context has shape 4, and 1 x 4 is needed"),
        ({"context": np.array([["x"] * 4])}, (), "context is str"),
        ({"context": CONTEXT}, ("--input-name", "context"), "'context' is one that samples"),
    ],
)
def test_bad_inputs_get_one_sentence(home, tmp_path, arrays, more, words) -> None:
    if arrays is not None:
        np.savez(tmp_path / "fixed.npz", **arrays)  # type: ignore[arg-type]
        more = (*more, "--fixed-inputs", tmp_path / "fixed.npz")
    refused = run(home, tmp_path / "out", *more)
    assert refused.code == 2, refused.both
    assert re.search(words, refused.sentence), refused.sentence


def test_int8_references_of_such_a_model_are_refused(home: Path, tmp_path: Path) -> None:
    more = ("--fixed-inputs", home / "fixed.npz", "--reference", "int8")
    models = ("--original", home / "original.onnx", "--deployed", home / "deployed.onnx")
    refused = edgeflare(
        *("run", *models, "--seeds", home / "seeds.npz", "--input", "scale=1/255", *more),
        home=tmp_path,
    )
    assert refused.code == 2
    assert "original.onnx has 2" in refused.sentence
