"""Which options of the seeds go with which kind of model."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import soundfile

from edgeflare.campaign.seeds import seed_source
from edgeflare.campaign.settings.config import config_from
from edgeflare.errors import SeedError, UsageError
from edgeflare.models import ONE_INPUT, OriginalModel, TensorInfo
from edgeflare.seeds import SeedSource
from edgeflare_mutators import MutationError, get

KWS = {"front_end": "mlperf-tiny-kws"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tone = 0.5 * np.sin(np.arange(40000) / 10)
    soundfile.write(tmp_path / "a.wav", tone, 16000)
    soundfile.write(tmp_path / "b.wav", tone[:8000], 8000)
    return tmp_path


def source(
    folder: Path,
    of: dict[str, Any],
    original: dict[str, Any],
    deployed: dict[str, Any],
    operators: tuple[str, ...] = (),
    *,
    words: bool = False,
    **search: Any,
) -> SeedSource:
    values = {
        "original": {"path": "float.tflite", "input": original},
        "deployed": {"path": "int8.tflite", "input": deployed},
        "seeds": {"path": str(folder), **of},
        "search": {"operators": operators, **search},
    }
    model = SimpleNamespace(
        path=Path("float.tflite"),
        metadata={},
        decoder={"kind": "tokens"} if words else None,
        input=TensorInfo("input", (1, 49, 10, 1), "float32", None),
        given=ONE_INPUT,
    )
    return seed_source(config_from(values, "test"), cast("OriginalModel", model))


@pytest.mark.parametrize(("original", "deployed"), [(KWS, {}), ({}, KWS)])
def test_either_models_front_end_gives_rate_and_length(folder, original, deployed) -> None:
    seeds = list(source(folder, {"cut": "windows", "resample": True}, original, deployed))
    lengths = {seed.id: len(seed.sample) for seed in seeds}
    assert lengths == {
        "a.wav@0.000s": 16000,
        "a.wav@1.000s": 16000,
        "a.wav@2.000s": 8000,
        "b.wav": 16000,
    }


@pytest.mark.parametrize("of", [{"resize": "bilinear"}, {"size": [28, 28]}])
def test_options_of_images_are_refused_with_audio(folder: Path, of: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="takes audio"):
        source(folder, of, KWS, {})


@pytest.mark.parametrize("of", [{"cut": "first"}, {"resample": True}])
def test_options_of_audio_are_refused_with_images(folder: Path, of: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"audio.*front_end="):
        source(folder, of, {"scale": 1}, {})


@pytest.mark.parametrize(
    ("original", "operator", "seeds"), [(KWS, "jpeg", "audio"), ({"scale": 1}, "gain", "images")]
)
def test_operators_for_the_other_kind_are_refused_before_anything_is_sent(
    folder: Path, original: dict[str, Any], operator: str, seeds: str
) -> None:
    problem = rf"the operator {operator} mutates \w+, and the seed inputs are {seeds}; choose of "
    with pytest.raises(UsageError, match=problem):
        source(folder, {}, original, {}, (operator,))


def test_audio_for_a_model_whose_front_end_nothing_states(folder: Path) -> None:
    with pytest.raises(SeedError, match=r"images.*front_end="):
        source(folder, {}, {"scale": 1}, {})


def test_an_unknown_rule_is_named(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"seeds\.cut must"):
        source(folder, {"cut": "last"}, KWS, {})


def test_what_a_search_by_words_has_no_use_for_is_refused_before_anything_is_sent(folder) -> None:
    line = {"options": {"crossing": "least-l2"}}
    with pytest.raises(UsageError, match="crossing least-l2"):
        source(folder, {}, KWS, {}, words=True, **line)
    assert source(folder, {"cut": "first", "resample": True}, KWS, {}, **line).total == 2


def test_recognisers_take_operators_without_a_crossing_and_class_scores_do_not(folder) -> None:
    named, of = ("tempo", "room"), {"cut": "first", "resample": True}
    assert source(folder, of, KWS, {}, named, words=True).total == 2
    with pytest.raises(UsageError, match="mutation operators"):
        source(folder, of, KWS, {}, named)


@pytest.mark.parametrize(
    ("search", "words"),
    [({}, True), ({"strategy": "dflare"}, False), ({"strategy": "diffchaser"}, True)],
)
def test_a_missing_library_of_the_strategys_own_operators_is_reported_before_anything_is_sent(
    folder: Path, search: dict[str, Any], words: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: object) -> None:
        raise MutationError("audiomentations is missing")

    for name in ("pitch-shift", "room"):
        monkeypatch.setattr(type(get(name)), "check_libraries", missing)
    of = {"cut": "first", "resample": True}
    with pytest.raises(UsageError, match="audiomentations is"):
        source(folder, of, KWS, {}, words=words, **search)
    assert source(folder, of, KWS, {}).total == 2
