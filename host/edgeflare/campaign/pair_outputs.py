"""Which output of each model counts, and whether it holds scores, text or, in the deployed model, a label alone."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from edgeflare.campaign.config import ModelConfig
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import (
    TensorInfo,
    check_index,
    has_one_value,
    is_index,
    output_classes,
    text_output,
)
from edgeflare.text import shape_text


class TextSource(NamedTuple):
    """Where a speech recogniser's text comes from.

    `output` is decoded; `decoder` is what a device is sent to do so (without a vocabulary where that is in the model's
    file), `identity` all that identifies it, without the vocabulary.
    """

    output: TensorInfo
    decoder: Mapping[str, Any]
    identity: Mapping[str, Any]


def text_source(
    outputs: Sequence[TensorInfo],
    config: ModelConfig,
    in_file: Mapping[str, Any] | None,
    whose: str,
) -> TextSource | None:
    """Return how a model's outputs become text, as stated or as in its file; None for a model that returns scores.

    Raises ModelError where its outputs or the vocabulary don't fit, UsageError where what is stated doesn't.
    """
    if config.decoder is not None and config.output not in ("auto", "transcript"):
        raise UsageError(
            f"a decoder is stated for {whose}, but also that it returns {config.output}: state one of the two"
        )
    if config.output not in ("auto", "transcript"):
        return None
    decoder, identity = {"vocabulary": None}, in_file
    if config.decoder is not None:
        _check_for_a_decoder(outputs, config, config.decoder.kind, in_file, whose)
        stated = config.decoder.decoder()
        decoder, identity = stated.to_json(), stated.describe()
    if identity is None and config.output == "transcript":
        raise ModelError(
            f"the file of {whose} does not tell how its outputs become text; state it with "
            "`--decoder kind=ctc --decoder vocabulary=FILE`, or under the file's metadata key edgeflare.decoder"
        )
    if identity is None:
        return None
    output = text_output(str(identity["kind"]), outputs, config.output_name, whose)
    return TextSource(output, decoder, identity)


def transcribes(config: ModelConfig, in_file: Mapping[str, Any] | None) -> bool:
    """Whether a model returns text, as stated, or as `in_file` says."""
    if config.output == "auto":
        return config.decoder is not None or in_file is not None
    return config.output == "transcript"


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
            f"{whose} brings its own decoder (its file says how its outputs become text), and none of kind ctc fits "
            "it: leave `--decoder` out"
        )
    if all(_is_scores(tensor) for tensor in outputs if config.output_name in (None, tensor.name)):
        raise ModelError(
            f"{whose} is none that a decoder is for: it returns one score for each class, not one for each symbol "
            "and moment, as a speech recogniser does; leave `--decoder` out"
        )


def _is_scores(tensor: TensorInfo) -> bool:
    """Whether an output is of one score for each class, and of no frames."""
    return len(tensor.shape) == 1 or (len(tensor.shape) == 2 and tensor.shape[0] in (1, None))


def check_both_transcribe(
    texts: tuple[TextSource | None, TextSource | None],
    outputs: tuple[Sequence[TensorInfo], Sequence[TensorInfo]],
) -> None:
    """Raise ModelError where one model, the original first, has a source of text and the other has none."""
    original, deployed = texts
    if (original is None) == (deployed is None):
        return
    hears, other = ("original", "deployed") if deployed is None else ("deployed", "original")
    if all(_is_scores(tensor) for tensor in outputs[other == "deployed"]):
        raise ModelError(
            f"the {hears} model is a speech recogniser and the {other} model returns one score for each class: they "
            "are not two versions of one model"
        )
    raise ModelError(
        f"the {hears} model returns text and the {other} model does not tell how its outputs become text; state it "
        "with `--decoder kind=ctc --decoder vocabulary=FILE`, or compare both models' scores with `--output logits`"
    )


def choose_output(outputs: Sequence[TensorInfo], config: ModelConfig, whose: str) -> TensorInfo:
    """Return the output that counts: the one that is named, or the only one. Raises ModelError."""
    names = [tensor.name for tensor in outputs]
    if config.output_name is None:
        if len(outputs) == 1:
            return outputs[0]
        raise ModelError(
            f"{whose} has {len(outputs)} outputs ({', '.join(names)}); name the one with the class scores with "
            f"`--{'original' if 'original' in whose else 'deployed'}-output-name`"
        )
    if config.output_name not in names:
        raise ModelError(f"{whose} has no output {config.output_name!r}; it has {', '.join(names)}")
    return outputs[names.index(config.output_name)]


def check_no_frames(output: TensorInfo, whose: str) -> None:
    """Raise ModelError where an output of a model of audio has scores for each moment, as that of a recogniser."""
    if len(output.shape) == 3 and sum(size != 1 for size in output.shape[1:]) > 1:
        raise ModelError(
            f"output {output.name!r} of {whose} has shape {shape_text(output.shape)}: not one score for each class; if it is a speech "
            "recogniser, state how its outputs become text with `--decoder vocabulary=FILE` (a token a line)"
        )


def original_classes(output: TensorInfo, config: ModelConfig) -> int:
    """Return the number of classes: that of the original's scores.

    Raises ModelError where its output is none of scores.
    """
    unknown = output.shape in ((), (None,))  # so is one whose rank the file leaves open
    if config.output == "label":
        raise ModelError(
            "the original model is stated to return labels, as `--output label` states of both models; "
            "only the deployed one may: use `--deployed-output label`"
        )
    if is_index(output) or (has_one_value(output) and not unknown):
        raise ModelError(
            f"output {output.name!r} of the original model is one value, not a score for each class: the "
            "search needs the original's scores, so give the original as it was before it was made to "
            "tell a label alone (only the deployed model may: `--deployed-output label`); a model that estimates "
            "a number (regression) isn't supported yet"
        )
    return output_classes(output, "the original model")


def tells_label(output: TensorInfo, config: ModelConfig, classes: int) -> bool:
    """Whether the deployed model's output is a class index, as stated or told from its type and shape.

    Raises ModelError where it is none and has no score for each of the original's `classes` either.
    """
    if config.output == "label" or (config.output == "auto" and is_index(output)):
        check_index(output)
        return True
    if has_one_value(output):
        raise ModelError(
            f"output {output.name!r} of the deployed model is one value ({output.dtype}) where the "
            f"original has {classes} classes; if it is the class index, state `--deployed-output label`"
        )
    count = output_classes(output, "the deployed model")
    if classes != count:
        raise ModelError(
            f"the original model has {classes} classes and the deployed model {count}: they "
            "are not two versions of one model"
        )
    return False
