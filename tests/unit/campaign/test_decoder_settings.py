"""How outputs become text or boxes, as flags and a campaign.toml state it, and as a resumed campaign checks it."""

from pathlib import Path
from typing import Any

import pytest
from speech_models import LETTERS, ctc_model

from edgeflare.answers.detections.interfaces import detector_format, detector_interfaces
from edgeflare.answers.interface import ModelOutputs
from edgeflare.answers.text_interfaces import stated_task
from edgeflare.campaign import provenance
from edgeflare.campaign.settings.config import config_from, load_config
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.cli.options import typed
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import DetectorOptions, InputSpec, TensorInfo


class Kept:
    """Stands for a campaign's store, with what was known of its models."""

    def __init__(self, **models: object) -> None:
        self.models = models


def test_a_vocabulary_in_a_campaign_file_starts_at_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(
        '[original]\npath = "o.onnx"\n[original.decoder]\nvocabulary = "v.txt"\nspace = "|"\n'
        '[deployed]\npath = "d.tflite"\noutput = "transcript"\n[seeds]\npath = "clips"\n'
    )
    config = load_config(file)
    assert config.original.decoder.vocabulary == tmp_path / "v.txt"
    assert (config.original.decoder.kind, config.original.decoder.blank) == ("ctc", 0)
    assert config.deployed.decoder is None
    assert config_from(config.model_dump(mode="json"), "the store") == config


def test_a_flag_states_the_decoder_of_both_models() -> None:
    flags = {"decoder": ["vocabulary=v.json", "blank=4", "space=|"]}
    values = typed(flags).values
    stated = {"vocabulary": "v.json", "blank": 4, "space": "|"}
    assert values["original"] == values["deployed"] == {"decoder": stated}
    assert "decoder" not in typed({"output": "transcript"}).values["original"]


def test_a_misspelt_entry_alone_is_said_not_to_exist() -> None:
    flags = typed({"decoder": ["kin=fastestdet"], "original": "o", "deployed": "d", "seeds": "s"})
    with pytest.raises(UsageError) as error:
        config_from(flags.values, "run", flags.flags)
    assert "setting --decoder kin" in str(error.value)


RAW_OUTPUTS = tuple(
    TensorInfo(name, shape, "float32")
    for name, shape in (("scores", (1, 4420, 2)), ("boxes", (1, 4420, 4)))
)
IMAGES = InputSpec(shape=(1, 240, 320, 3), dtype="float32", channels=3, size=(240, 320))


def outputs_of(decoder: dict[str, Any], **metadata: str) -> ModelOutputs:
    config = ModelConfig.model_validate({"path": "m.onnx", "decoder": decoder})
    again = ModelConfig.model_validate(config.model_dump(mode="json"))  # as a store has it
    assert again == config
    return ModelOutputs(RAW_OUTPUTS, metadata, again, "the original model", IMAGES)


@pytest.mark.parametrize(
    "stated",
    [{"background": 0}, {"box": "xyxy"}, {"units": "shares"}, {"outputs": ["scores", "boxes"]}],
)
def test_settings_without_a_kind_are_those_of_the_detector_that_is_recognised(stated) -> None:
    expected = {"kind": "ssd-raw", "outputs": ["scores", "boxes"], **stated}
    found = detector_format(outputs_of(stated))
    assert found.options == DetectorOptions.model_validate(expected)


def test_a_stated_kind_does_not_hide_what_the_file_says() -> None:
    with pytest.raises(ModelError, match="metadata states"):
        detector_format(outputs_of({"kind": "yolo"}, task="pose"))


@pytest.mark.parametrize("background", [2, 7])
def test_a_background_beyond_the_classes_is_refused(background: int) -> None:
    flags = {"original": {"path": "m"}, "deployed": {"path": "m"}, "seeds": {"path": "s"}}
    original = outputs_of({"background": background})
    with pytest.raises(ModelError, match=f"{background}: output"):
        detector_interfaces(
            config_from(flags, "run").detection, original, outputs_of({"background": 0})
        )


def test_a_vocabulary_that_has_changed_since_is_reported(tmp_path: Path) -> None:
    path, words = ctc_model(tmp_path / "m.onnx"), tmp_path / "v.txt"
    words.write_text("\n".join(LETTERS))
    model = {"path": path, "decoder": {"vocabulary": words}}
    config = config_from({"original": model, "deployed": model, "seeds": {"path": path}}, "run")
    identity = {"output": {"decoder": config.deployed.decoder.decoder().describe()}}
    store = Kept(deployed=identity)
    assert list(provenance._changed_models(config, store)) == []  # type: ignore[arg-type]
    words.write_text("\n".join(reversed(LETTERS)))
    assert list(provenance._changed_models(config, store)) == [  # type: ignore[arg-type]
        f"the vocabulary {words} has changed"
    ]


CTC = {"kind": "ctc", "vocabulary": "v.txt"}


@pytest.mark.parametrize(
    ("stated", "task", "has_decoder", "expected"),
    [
        ({}, "auto", True, True),
        ({}, "auto", False, False),
        ({"decoder": CTC}, "auto", False, True),
        ({"output": "transcript"}, "auto", False, True),
        ({"output": "logits"}, "auto", True, False),
        ({"decoder": {"kind": "yolo"}}, "auto", True, False),
        ({}, "vector", True, False),
        ({}, "transcript", False, True),
    ],
)
def test_what_is_stated_wins_over_a_decoder_in_the_file(
    stated: dict[str, Any], task: str, has_decoder: bool, expected: bool
) -> None:
    tables = {
        "original": {"path": "o.onnx", **stated},
        "deployed": {"path": "d.onnx"},
        "seeds": {"path": "s"},
        "task": task,
        "search": {"tolerance": 0.1} if task == "vector" else {},
    }
    in_file = {"kind": "ctc"} if has_decoder else None
    found = stated_task(config_from(tables, "the test"), in_file)
    assert (found == "transcript") is expected
