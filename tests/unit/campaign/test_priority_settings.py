"""Which models and settings an order of the seeds goes with, and the order by the original's own process."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_pairs import Pair, stated
from plugin_distributions import write_distribution
from small_models import dense_onnx, flat_weights

from edgeflare import answers
from edgeflare._internal.flags import flags_of
from edgeflare.answers.interface import ModelInterface
from edgeflare.campaign.priority import check_priority, is_ordered_before, source_priorities
from edgeflare.campaign.seeds import partner_source, seed_source
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.errors import UsageError
from edgeflare.models import InputSpec, TensorInfo

SPEC = InputSpec((8, 8), 1, "NHWC", "float32", (1.0, 1.0), (0.0,), (1.0,))
SCORES = ModelInterface(SPEC, TensorInfo("y", (1, 4), "float32", None), 4)
SINGLE = SCORES._replace(output=TensorInfo("y", (1, 1), "float32", None), classes=2)
SPEECH = SCORES._replace(kind=answers.TRANSCRIPTS, task="transcript", classes=0)
LABELS = SCORES._replace(kind=answers.LABELS)
MEASURES = ("margin", "gini", "surprise", "rarity", "drift")


def config(measure: str | None, **tables: Any) -> CampaignConfig:
    values = {
        "original": {"path": "a.onnx"},
        "deployed": {"path": "b.onnx"},
        "seeds": {"path": "seeds", "prioritise": measure},
        **tables,
    }
    return config_from(values, "the test")


def test_only_measures_of_the_original_order_the_seeds_before_a_device_is_asked() -> None:
    before = [one for one in (None, *MEASURES) if is_ordered_before(config(one).seeds)]
    assert before == ["margin", "gini", "surprise", "rarity"]


@pytest.mark.parametrize("measure", MEASURES)
def test_models_without_scores_are_refused_in_one_sentence(measure: str) -> None:
    check_priority(config(measure), (SCORES, SCORES))
    for pair in ((SPEECH, SPEECH), (SPEECH, SCORES)):
        with pytest.raises(UsageError, match=f"^--prioritise {measure}"):
            check_priority(config(measure), pair)


def test_what_single_measures_lack_is_refused() -> None:
    check_priority(config("margin"), (SINGLE, SINGLE))
    with pytest.raises(UsageError, match="--prioritise margin"):
        check_priority(config("surprise"), (SINGLE, SINGLE))
    check_priority(config("margin"), (SCORES, LABELS))
    with pytest.raises(UsageError, match="deployed model"):
        check_priority(config("drift"), (SCORES, LABELS))
    off = config("drift", survey={"enabled": False})
    with pytest.raises(UsageError, match=r"\(--survey"):
        check_priority(off, (SCORES, SCORES))
    check_priority(config(None), (SPEECH, SPEECH))


def test_rarity_needs_an_original_in_onnx() -> None:
    with pytest.raises(UsageError, match=r"a\.tflite: .*ONNX"):
        check_priority(config("rarity", original={"path": "a.tflite"}), (SCORES, SCORES))
    check_priority(config("surprise", original={"path": "a.tflite"}), (SCORES, SCORES))


def test_without_a_survey_there_is_no_order_by_its_answers() -> None:
    for measure, left in (("drift", None), ("margin", "margin"), (None, None)):
        found = config(measure, survey={"references": ["int8"]}).without_survey
        assert (found.seeds.prioritise, found.survey.enabled) == (left, False)
        assert not found.survey.references
        check_priority(found, (SCORES, SCORES))


def test_a_measure_that_there_isnt_is_named() -> None:
    with pytest.raises(UsageError, match=r"seeds\.prioritise must"):
        config("best")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    dense_onnx(folder / "original.onnx", [1, 8, 8, 1], softmax=False)
    images = np.random.default_rng(0).integers(256, size=(70, 8, 8, 1), dtype=np.uint8)
    np.savez(folder / "seeds.npz", images=images)
    return folder


def pair_config(folder: Path, **seeds: Any) -> CampaignConfig:
    found = stated(folder / "original.onnx", folder / "original.onnx")
    table = {"path": folder / "seeds.npz", **seeds}
    return config_from({**found.model_dump(), "seeds": table}, "the test")


def test_logits_go_through_a_softmax(folder: Path) -> None:
    chosen = pair_config(folder, prioritise="margin", limit=3)
    with ExitStack() as stack:
        pair = Pair(chosen, stack)
        source = seed_source(chosen, pair.original)
        found = source_priorities(chosen, pair.original, pair.sides[0], source)
        others = partner_source(chosen, pair.original)
        assert others is not None
        assert [one.id for one in others] == [f"seeds.npz:{k}" for k in range(32)]
    with np.load(folder / "seeds.npz") as archive:
        logits = archive["images"].reshape(70, 64) / np.float32(255) @ flat_weights()
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    top = np.sort(shares, axis=1)
    np.testing.assert_allclose(found, top[:, -2] - top[:, -1], atol=1e-5)


def test_partners_are_stored_where_the_first_seeds_arent_they(folder: Path) -> None:
    with ExitStack() as stack:
        pair = Pair(pair_config(folder), stack)
        cases = [
            (None, None, None), (None, 40, None), ("drift", None, None), (None, 31, 32),
            ("drift", 31, 32), ("margin", None, 32), ("gini", 40, 32),
        ]  # fmt: skip
        for measure, limit, expected in cases:
            chosen = pair_config(folder, prioritise=measure, limit=limit)
            others = partner_source(chosen, pair.original)
            assert (None if others is None else len(list(others))) == expected, (measure, limit)
            before = is_ordered_before(chosen.seeds)
            read = len(list(seed_source(chosen, pair.original)))
            assert read == (70 if before or limit is None else limit)


_ORDERS = """
import numpy as np
from edgeflare.campaign.priority import SeedPriority
from edgeflare.errors import UsageError

class Brightest(SeedPriority):
    needs_several_scores = True

    def check(self, original):
        if original.suffix != ".onnx":
            raise UsageError("brightest needs an ONNX original")

    def __call__(self, seeds, scores, original):
        assert original.spec.channels == 1
        return np.array([seed.sample.mean() for seed in seeds])

class Torn(Brightest):
    def __init__(self):
        raise ZeroDivisionError("torn")

nothing = 3
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with an order of seeds, and a thing that is none."""
    entries = {
        "edgeflare.priorities/brightest": "Brightest",
        "edgeflare.priorities/nothing": "nothing",
        "edgeflare.priorities/torn": "Torn",
    }
    write_distribution(tmp_path, "own_orders", _ORDERS, entries)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
def test_an_order_of_another_distribution_is_one(folder: Path) -> None:
    chosen = pair_config(folder, prioritise="brightest", limit=3)
    with ExitStack() as stack:
        pair = Pair(chosen, stack)
        source = seed_source(chosen, pair.original)
        found = source_priorities(chosen, pair.original, pair.sides[0], source)
    with np.load(folder / "seeds.npz") as archive:
        assert found.tolist() == [image.mean() for image in archive["images"]]
    (text,) = {one.help for one in flags_of(CampaignConfig) if one.flag.name == "--prioritise"}
    assert text.split(": ")[-1] == "brightest, nothing, torn."


@pytest.mark.usefixtures("installed")
def test_what_an_order_of_another_distribution_needs_is_asked_before_the_device_is() -> None:
    assert is_ordered_before(config("brightest").seeds)
    check_priority(config("brightest"), (SCORES, SCORES))
    with pytest.raises(UsageError, match="ONNX original"):
        check_priority(config("brightest", original={"path": "a.tflite"}), (SCORES, SCORES))
    with pytest.raises(UsageError, match="single one"):
        check_priority(config("brightest"), (SINGLE, SINGLE))
    with pytest.raises(UsageError, match=r"nothing.*SeedPriority"):
        check_priority(config("nothing"), (SCORES, SCORES))
    with pytest.raises(UsageError, match=r"my-plugins .*ZeroDivisionError"):
        check_priority(config("torn"), (SCORES, SCORES))
