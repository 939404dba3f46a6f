"""Two models that return text: where it comes from."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from edgeflare.answers.detections.formats import DetectorOptions
from edgeflare.answers.interface import ModelInterface, ModelOutputs
from edgeflare.answers.outputs import text_output
from edgeflare.answers.transcripts import TRANSCRIPTS
from edgeflare.errors import ModelError, UsageError
from edgeflare.words.answers import symbols_of_file
from edgeflare_agent.decoding import decoder_in
from edgeflare_agent.image_spec import TensorInfo


class TextSource(NamedTuple):
    """Where a model's text comes from.

    `output` is decoded; `decoder` is what a device is sent to do so (without a vocabulary where
    that is in the model's file), `identity` all that identifies it, without the vocabulary.
    """

    output: TensorInfo
    decoder: Mapping[str, Any]
    identity: Mapping[str, Any]


def text_sources(
    task: str, original: ModelOutputs, deployed: ModelOutputs
) -> tuple[TextSource, TextSource] | None:
    """Return how both models' outputs become text, as stated or as in their files; None: they don't.

    `task` as it is stated. Raises ModelError where only one of them returns text, or its outputs or
    the vocabulary don't fit, UsageError where what is stated doesn't.
    """
    first = _text_source(original, task)
    second = _symbols_of_original(first, original, deployed) or _text_source(deployed, task)
    if first is not None and second is not None:
        return first, second
    if first is not None or second is not None:
        scored = original if first is None else deployed
        raise _one_transcribes("deployed" if first is None else "original", scored.in_file)
    return None


def stated_task(config: Any, in_file: Mapping[str, Any] | None) -> str:
    """Return the task as far as it is known before the deployed model is; else "classification".

    `config` is the campaign's, `in_file` the decoder that the original's file states, if any.
    """
    if _transcribes(config, in_file):
        return "transcript"
    if config.values.gallery is not None:
        return "classification"
    if config.task != "auto":
        return str(config.task)
    decoders = (config.original.decoder, config.deployed.decoder)
    is_detector = any(isinstance(decoder, DetectorOptions) for decoder in decoders)
    return "detection" if is_detector else "classification"


def _transcribes(config: Any, in_file: Mapping[str, Any] | None) -> bool:
    """Whether the original returns text, as the campaign's `config` states, or as its file says."""
    stated = config.original
    if config.task != "auto":
        return bool(config.task == "transcript")
    if stated.output != "auto" or isinstance(stated.decoder, DetectorOptions):
        return bool(stated.output == "transcript")
    return stated.decoder is not None or in_file is not None


def text_interfaces(
    original: ModelOutputs, deployed: ModelOutputs
) -> tuple[ModelInterface, ModelInterface]:
    """Return the interfaces of two models that return text. Raises as `text_sources`.

    It is said where a decoder follows from the convention of others.
    """
    sources = text_sources("transcript", original, deployed)
    assert sources is not None  # noqa: S101 - stated to be text, or it raises
    first, second = (
        ModelInterface(
            outputs.spec,
            source.output,
            kind=TRANSCRIPTS,
            task="transcript",
            decoder=source.identity,
            sent_decoder=source.decoder,
        )
        for outputs, source in zip((original, deployed), sources, strict=True)
    )
    origins = [source.identity.get("origin") for source in sources]
    for origin in list(filter(None, origins))[:1]:
        first = first._replace(inferred=symbols_of_file(origin))
    return first, second


def _text_source(model: ModelOutputs, task: str) -> TextSource | None:
    """Return how a model's outputs become text, as stated or as in its file; None: it has scores.

    Raises ModelError where its outputs or the vocabulary don't fit, UsageError where what is stated
    doesn't.
    """
    config, identity = model.config, model.decoder
    if isinstance(config.decoder, DetectorOptions):
        if task == "transcript":
            raise UsageError(f"the decoder that is stated for {model.whose} makes boxes, not text")
        return None
    if config.decoder is not None and config.output not in ("auto", "transcript"):
        raise UsageError(
            f"a decoder is stated for {model.whose}, but also that it returns {config.output}: state "
            "one of the two"
        )
    if config.output not in ("auto", "transcript"):
        return None
    decoder: Mapping[str, Any] = {"vocabulary": None}
    if config.decoder is not None:
        _check_for_a_decoder(model)
        stated = config.decoder.decoder()
        decoder, identity = stated.to_json(), stated.describe()
    if identity is None and "transcript" in (config.output, task):
        raise ModelError(
            f"the file of {model.whose} does not say how its outputs become text; state it with "
            "`--decoder kind=ctc --decoder vocabulary=FILE`, or under the file's metadata key "
            "edgeflare.decoder"
        )
    if identity is None:
        return None
    output = text_output(str(identity["kind"]), model.in_file, config.output_name, model.whose)
    return TextSource(output, decoder, identity)


def _symbols_of_original(
    text: TextSource | None, original: ModelOutputs, deployed: ModelOutputs
) -> TextSource | None:
    """Return how a deployed model's outputs become text by the symbols in the original's file.

    None where they don't fit, and where something else is stated or in the deployed model's own file.
    A conversion often loses them.
    """
    stated = deployed.config.decoder is not None or deployed.config.output != "auto"
    if text is None or stated or deployed.decoder is not None or not text.identity.get("origin"):
        return None
    decoder = decoder_in(original.metadata, str(original.config.path), deployed.in_file)
    if decoder is None:
        return None
    return TextSource(deployed.in_file[0], decoder.to_json(), decoder.describe())


def _check_for_a_decoder(model: ModelOutputs) -> None:
    """Raise ModelError for a model that the decoder which is stated can't be for."""
    kind, config = model.config.decoder.kind, model.config
    if kind != "ctc":
        return
    if model.decoder is not None and model.decoder["kind"] != kind:
        raise ModelError(
            f"{model.whose} brings its own decoder (its file says how its outputs become text), and "
            "none of kind ctc fits it: leave `--decoder` out"
        )
    counted = [tensor for tensor in model.in_file if config.output_name in (None, tensor.name)]
    if all(map(_is_scores, counted)):
        raise ModelError(
            f"{model.whose} is none that a decoder is for: it returns one score for each class, not "
            "one for each symbol and frame, as a model that returns text does; leave `--decoder` out"
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
