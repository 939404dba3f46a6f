"""Two models that return text: where it comes from."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from edgeflare.campaign.pair.interface import ModelInterface
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.devices import LoadedModel
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import (
    DetectorOptions,
    OriginalModel,
    Spec,
    TensorInfo,
    decoder_in,
    text_output,
)


class TextSource(NamedTuple):
    """Where a model's text comes from.

    `output` is decoded; `decoder` is what a device is sent to do so (without a vocabulary where
    that is in the model's file), `identity` all that identifies it, without the vocabulary.
    """

    output: TensorInfo
    decoder: Mapping[str, Any]
    identity: Mapping[str, Any]


def text_sources(
    config: CampaignConfig, original: OriginalModel, deployed: LoadedModel
) -> tuple[TextSource, TextSource] | None:
    """Return how both models' outputs become text, as stated or as in their files; None: they don't.

    Raises ModelError where only one of them returns text, or its outputs or the vocabulary don't
    fit, UsageError where what is stated doesn't.
    """
    if config.task not in ("auto", "transcript"):
        return None
    first = _text_source(
        original.outputs, config.original, original.decoder, "the original model", config.task
    )
    second = _text_source(
        deployed.outputs, config.deployed, deployed.decoder, "the deployed model", config.task
    )
    second = second or _symbols_of_original(first, config, original, deployed.outputs)
    if first is not None and second is not None:
        return first, second
    if first is not None or second is not None:
        scored = original.outputs if first is None else deployed.outputs
        raise _one_transcribes("deployed" if first is None else "original", scored)
    return None


def transcribes(config: CampaignConfig, in_file: Mapping[str, Any] | None) -> bool:
    """Whether the original returns text, as stated, or as the decoder that is `in_file` says."""
    stated = config.original
    if config.task != "auto":
        return config.task == "transcript"
    if stated.output != "auto" or isinstance(stated.decoder, DetectorOptions):
        return stated.output == "transcript"
    return stated.decoder is not None or in_file is not None


def transcribing_side(spec: Spec, text: TextSource) -> ModelInterface:
    """Return the side of a model that returns text."""
    return ModelInterface(spec, text.output, task="transcript", decoder=text.identity)


def vocabulary_notices(sides: tuple[ModelInterface, ModelInterface]) -> list[str]:
    """Return what is said where a decoder follows from the convention of others, at most once."""
    origins = [side.decoder.get("origin") for side in sides if side.decoder is not None]
    return [
        f"outputs become text by the symbols in the metadata {origin!r} of the model's file, as "
        "PP-OCR's models have it: a blank before them, a space after them; "
        "`--decoder vocabulary=FILE` states others"
        for origin in list(filter(None, origins))[:1]
    ]


def _text_source(
    outputs: Sequence[TensorInfo],
    config: ModelConfig,
    in_file: Mapping[str, Any] | None,
    whose: str,
    task: str,
) -> TextSource | None:
    """Return how a model's outputs become text, as stated or as in its file; None: it has scores.

    Raises ModelError where its outputs or the vocabulary don't fit, UsageError where what is stated
    doesn't.
    """
    if isinstance(config.decoder, DetectorOptions):
        if task == "transcript":
            raise UsageError(f"the decoder that is stated for {whose} makes boxes, not text")
        return None
    if config.decoder is not None and config.output not in ("auto", "transcript"):
        raise UsageError(
            f"a decoder is stated for {whose}, but also that it returns {config.output}: state one "
            "of the two"
        )
    if config.output not in ("auto", "transcript"):
        return None
    decoder, identity = {"vocabulary": None}, in_file
    if config.decoder is not None:
        _check_for_a_decoder(outputs, config, config.decoder.kind, in_file, whose)
        stated = config.decoder.decoder()
        decoder, identity = stated.to_json(), stated.describe()
    if identity is None and "transcript" in (config.output, task):
        raise ModelError(
            f"the file of {whose} does not say how its outputs become text; state it with "
            "`--decoder kind=ctc --decoder vocabulary=FILE`, or under the file's metadata key "
            "edgeflare.decoder"
        )
    if identity is None:
        return None
    output = text_output(str(identity["kind"]), outputs, config.output_name, whose)
    return TextSource(output, decoder, identity)


def _symbols_of_original(
    text: TextSource | None,
    config: CampaignConfig,
    original: OriginalModel,
    outputs: Sequence[TensorInfo],
) -> TextSource | None:
    """Return how a deployed model's outputs become text by the symbols in the original's file.

    None where they don't fit, and where something else is stated. A conversion often loses them.
    """
    stated = config.deployed.decoder is not None or config.deployed.output != "auto"
    if text is None or stated or not text.identity.get("origin"):
        return None
    decoder = decoder_in(original.metadata, str(original.path), outputs)
    if decoder is None:
        return None
    return TextSource(outputs[0], decoder.to_json(), decoder.describe())


def _check_for_a_decoder(
    outputs: Sequence[TensorInfo],
    config: ModelConfig,
    kind: str,
    in_file: Mapping[str, Any] | None,
    whose: str,
) -> None:
    """Raise ModelError for a model that a decoder of this kind can't be for."""
    if kind != "ctc":
        return
    if in_file is not None and in_file["kind"] != kind:
        raise ModelError(
            f"{whose} brings its own decoder (its file says how its outputs become text), and none "
            "of kind ctc fits it: leave `--decoder` out"
        )
    if all(_is_scores(tensor) for tensor in outputs if config.output_name in (None, tensor.name)):
        raise ModelError(
            f"{whose} is none that a decoder is for: it returns one score for each class, not one "
            "for each symbol and frame, as a model that returns text does; leave `--decoder` out"
        )


def _is_scores(tensor: TensorInfo) -> bool:
    """Whether an output is of one score for each class, and of no frames."""
    return len(tensor.shape) == 1 or (len(tensor.shape) == 2 and tensor.shape[0] in (1, None))


def _one_transcribes(speech: str, others: Sequence[TensorInfo]) -> ModelError:
    """Return the error where the model `speech` alone returns text; `others`: the other's outputs."""
    other = "deployed" if speech == "original" else "original"
    if all(map(_is_scores, others)):
        return ModelError(
            f"the {speech} model returns text and the {other} model returns one score "
            "for each class: they are not two versions of one model"
        )
    return ModelError(
        f"the {speech} model returns text and the {other} model does not say how its outputs "
        "become text; state it with `--decoder kind=ctc --decoder vocabulary=FILE`, or compare "
        "both models' scores with `--output logits`"
    )
