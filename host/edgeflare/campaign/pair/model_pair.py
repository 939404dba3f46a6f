"""The two models of a campaign, brought to one understanding of inputs and outputs."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, cast

from edgeflare._internal.text import shape_text
from edgeflare.answers import kind_of_task
from edgeflare.answers.outputs import load_repair
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.pair.detectors import (
    check_same_objects,
    keeping_boxes,
    with_background_of,
)
from edgeflare.campaign.pair.inputs import check_inputs, chosen_input, other_order
from edgeflare.campaign.pair.interface import Comparison, ModelInterface
from edgeflare.campaign.pair.tasks import (
    ModelOutputs,
    check_same_classes,
    check_settings,
    find_task,
    unbatched_like,
    unbatched_outputs,
    with_batch,
)
from edgeflare.campaign.pair.texts import text_sources, transcribing_side, vocabulary_notices
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.devices import ReconnectingSession, Reply
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import (
    SINGLE_KINDS,
    AnswerReader,
    AudioSpec,
    InputOptions,
    OriginalModel,
    OutputKind,
    RawOutput,
    TensorInfo,
    as_output,
    check_index,
    detect_kind,
    has_one_value,
    is_index,
    known_of,
    largest_sum_error,
    output_classes,
    resolve_input,
)
from edgeflare.models.image_input import contradiction, options_in_file, scaling_of_range
from edgeflare.types import Output, Query, Transcript


def _check_no_frames(model: ModelOutputs, output: TensorInfo) -> None:
    """Raise ModelError where an output has scores for each moment, of a model of audio or time first."""
    shape, axes = output.shape, ""
    is_first = output.name in model.unbatched and sum(size != 1 for size in shape) > 1
    if is_first:
        shape = shape[1:]
        axes = ", whose first axis is no batch (one input has several entries there, such as moments in time)"
    elif not isinstance(model.spec, AudioSpec) or len(shape) != 3:
        return
    if is_first or sum(size != 1 for size in shape[1:]) > 1:
        raise ModelError(
            f"output {output.name!r} of {model.whose} has shape {shape_text(shape)}{axes}: not one "
            "score for each class; if it returns text, state how its outputs become text "
            "with `--decoder vocabulary=FILE` (a token a line)"
            + (", else --task dense, vector or embedding" if is_first else "")
        )


def _original_classes(output: TensorInfo, config: ModelConfig) -> int:
    """Return the number of classes: that of the original's scores.

    Raises ModelError where its output is none of scores.
    """
    unknown = output.shape in ((), (None,))  # so is one whose rank the file leaves open
    if config.output == "label":
        raise ModelError(
            "the original model is stated to return labels, as `--output label` states of both "
            "models; only the deployed one may: use `--deployed-output label`"
        )
    if has_one_value(output) and not is_index(output) and config.output in SINGLE_KINDS:
        return 2
    if is_index(output) or (has_one_value(output) and not unknown):
        raise ModelError(
            f"output {output.name!r} of the original model is one value, not a score for each "
            "class: if it is the probability of one of two classes, state `--output sigmoid` "
            "(`sigmoid-logits` before the sigmoid); if it is a label, give the original as it was "
            "before it was made to tell a label alone (only the deployed model may: "
            "`--deployed-output label`); if it is a number, state `--task vector`"
        )
    return output_classes(output, "the original model")


def _returns_label(output: TensorInfo, config: ModelConfig, classes: int) -> bool:
    """Whether the deployed model's output is a class index, as stated or by its type and shape.

    Raises ModelError where it is none and has no score for each of the original's `classes` either.
    """
    if config.output == "label" or (config.output == "auto" and is_index(output)):
        check_index(output)
        return True
    if has_one_value(output) and classes == 2 and config.output in SINGLE_KINDS:
        return False
    if has_one_value(output):
        single = (
            ", if it is the probability of class 1 `--deployed-output sigmoid`"
            if classes == 2
            else ""
        )
        raise ModelError(
            f"output {output.name!r} of the deployed model is one value ({output.dtype}) where the "
            f"original has {classes} classes; if it is the class index, state `--deployed-output "
            f"label`{single}"
        )
    count = output_classes(output, "the deployed model")
    check_same_classes(classes, count)
    return False


_SUM_TOLERANCE = 0.02


class CountedDevice:
    """A device in a measurement, which counts the samples sent to it."""

    def __init__(self, session: ReconnectingSession) -> None:
        self._session = session
        self.name = session.name
        self.fingerprint = session.fingerprint
        self.samples = 0

    def submit(self, samples: Sequence[Query]) -> "Future[Reply[RawOutput]]":
        """Queue a request without waiting for anything."""
        self.samples += len(samples)
        return self._session.submit(samples, raw=True)


class RawOriginal:
    """The original model, whose answers are raw outputs."""

    def __init__(self, original: OriginalModel) -> None:
        self._original = original

    def answer(self, samples: Sequence[Query]) -> tuple[list[Output], list[float]]:
        """Return one raw output, or transcript, a sample, and the seconds of each."""
        raws, seconds = self._original.raw_answer(samples)
        return [as_output(raw) for raw in raws], seconds


def resolve_pair(
    config: CampaignConfig, original: OriginalModel, fleet: Fleet
) -> tuple[ModelInterface, ModelInterface]:
    """Return both models' interfaces; configure the original and every device with them.

    A pixel scaling that a file doesn't contain and the user doesn't state is taken from the other
    model, since both were made for the same inputs. Raises UsageError or ModelError where the two
    don't fit.
    """
    model = fleet.sessions[0].model
    whose = "the original model", "the deployed model"
    texts = text_sources(config, original, model)
    chosen = (
        chosen_input(config.original, original.inputs, whose[0]),
        chosen_input(config.deployed, model.inputs, whose[1]),
    )
    first, second = chosen[0].tensor, chosen[1].tensor
    in_files = (
        options_in_file(original.metadata, str(config.original.path)),
        options_in_file(model.metadata, str(config.deployed.path)),
    )
    known = (
        known_of(in_files[0], scaling_of_range(first), InputOptions()),
        known_of(in_files[1], scaling_of_range(second), InputOptions()),
    )
    specs = (
        resolve_input(
            first,
            config.original.input,
            known_of(known[0], config.deployed.input, known[1]),
            whose[0],
        ),
        resolve_input(
            second,
            config.deployed.input,
            known_of(known[1], config.original.input, known[0]),
            whose[1],
        ),
    )
    check_inputs(*specs)
    original.fix_inputs(chosen[0].given)
    unbatched = unbatched_outputs(original, specs[0])
    unbatched_there = unbatched_like(model.outputs, original.outputs, unbatched)
    outputs = (
        ModelOutputs(
            with_batch(original.outputs, unbatched),
            original.metadata,
            config.original,
            specs[0],
            whose[0],
            chosen[0].given.parts,
            unbatched,
        ),
        ModelOutputs(
            with_batch(model.outputs, unbatched_there),
            model.metadata,
            config.deployed,
            specs[1],
            whose[1],
            chosen[1].given.parts,
            unbatched_there,
        ),
    )
    if texts is not None:
        check_settings(config, "transcript")
        sides = transcribing_side(specs[0], texts[0]), transcribing_side(specs[1], texts[1])
    else:
        sides = _answering(config, *outputs)
    sides = (
        sides[0]._replace(
            doubt=contradiction(first, config.original.input, in_files[0], whose[0]),
            chosen=chosen[0],
        ),
        sides[1]._replace(
            doubt=contradiction(second, config.deployed.input, in_files[1], whose[1])
            or other_order(*chosen),
            chosen=chosen[1],
        ),
    )
    sides = sides[0], keeping_boxes(_repaired(sides[1], config), config.detection.keep)
    decoders = (None, None) if texts is None else (texts[0].decoder, texts[1].decoder)
    original.configure(sides[0].spec, sides[0].asked, decoders[0])
    for session in fleet:
        session.configure(
            sides[1].spec,
            sides[1].asked,
            decoders[1],
            sides[1].repair,
            keep=sides[1].keep,
            given=chosen[1].given,
        )
    return sides


def _repaired(deployed: ModelInterface, config: CampaignConfig) -> ModelInterface:
    """Return the deployed model as its repair leaves it, where it has one. Raises UsageError."""
    if config.original.repair is not None:
        raise UsageError("a repair is stated for the original model; only the deployed one has one")
    if config.deployed.repair is None:
        return deployed
    repair = load_repair(config.deployed.repair)
    has_scores = deployed.has_classes and deployed.compared.gallery is None
    if not has_scores or deployed.labels_only:
        found = deployed.answers if not deployed.has_classes else "no score for each"
        raise UsageError(
            f"the repair {config.deployed.repair} replaces the scores of classes, and the deployed "
            f"model returns {'a label alone' if deployed.labels_only else found}; leave it out"
        )
    if repair.size != deployed.classes:
        raise UsageError(
            f"the repair {config.deployed.repair} is for {repair.size} classes, and the deployed "
            f"model has {deployed.classes}; make one for this model"
        )
    return deployed._replace(output=repair.announced(deployed.output.name), repair=repair)


def _answering(
    config: CampaignConfig, original: ModelOutputs, deployed: ModelOutputs
) -> tuple[ModelInterface, ModelInterface]:
    """Return the sides of two models that return no text. Raises ModelError where they don't fit."""
    task, reason = find_task(config, original, deployed)
    check_settings(config, task)
    first, second = kind_of_task(task).interfaces(config, task, original, deployed)
    return first._replace(inferred=reason), second


def _class_outputs(original: ModelOutputs, deployed: ModelOutputs) -> tuple[TensorInfo, TensorInfo]:
    """Return both models' outputs of class scores. Raises ModelError for those of moments in time."""
    first, second = (
        model.single("the class scores", ", or state another --task")
        for model in (original, deployed)
    )
    _check_no_frames(original, first)
    _check_no_frames(deployed, second)
    return first, second


def tagging_sides(
    config: CampaignConfig, original: ModelOutputs, deployed: ModelOutputs
) -> tuple[ModelInterface, ModelInterface]:
    """Return the interfaces of two models of several labels. Raises ModelError where they don't fit."""
    first, second = _class_outputs(original, deployed)
    counts = [
        1 if has_one_value(output) else output_classes(output, model.whose)
        for output, model in ((first, original), (second, deployed))
    ]
    check_same_classes(*counts)
    compared = Comparison(config.detection.rules(located=False))
    return (
        ModelInterface(original.spec, first, task="multi-label", compared=compared),
        ModelInterface(deployed.spec, second, task="multi-label", compared=compared),
    )


def classifying_sides(
    config: CampaignConfig, original: ModelOutputs, deployed: ModelOutputs
) -> tuple[ModelInterface, ModelInterface]:
    """Return the interfaces of two classifiers. Raises ModelError where they don't fit."""
    first, second = _class_outputs(original, deployed)
    classes = _original_classes(first, config.original)
    labels_only = _returns_label(second, config.deployed, classes)
    return ModelInterface(original.spec, first, classes), ModelInterface(
        deployed.spec, second, classes, labels_only
    )


def readers(
    config: CampaignConfig,
    sides: tuple[ModelInterface, ModelInterface],
    raws: tuple[Sequence[Output], Sequence[Output]],
) -> tuple[tuple[AnswerReader, AnswerReader], list[str]]:
    """Return how both models' raw outputs become answers, as stated or inferred from the seeds.

    The second value has notices for the user.
    """
    read: list[AnswerReader] = []
    doubts = [side.doubt for side in sides if side.doubt]
    doubts += [side.inferred for side in sides if side.inferred]
    doubts += vocabulary_notices(sides)
    for whose, side, outputs, model in zip(
        ("original", "deployed"), sides, raws, (config.original, config.deployed), strict=True
    ):
        plain: list[Any] = [output for output in outputs if not isinstance(output, Transcript)]
        if read:
            side = with_background_of(read[0], side)  # noqa: PLW2901
        reader, doubt = _reader(side, model.output, plain, whose, read[0] if read else None)
        read.append(reader)
        doubts += [doubt] if doubt else []
    check_same_objects(read[0], read[1])
    return (read[0], read[1]), doubts


def original_reader(
    config: CampaignConfig, side: ModelInterface, raws: Sequence[Output]
) -> AnswerReader:
    """Return how the original's raw outputs become answers, as `readers` does."""
    plain: list[Any] = [raw for raw in raws if not isinstance(raw, Transcript)]
    return _reader(side, config.original.output, plain, "original", None)[0]


def _reader(
    side: ModelInterface,
    stated: str,
    outputs: Sequence[Any],
    whose: str,
    original: AnswerReader | None,
) -> tuple[AnswerReader, str]:
    """Return how a model's outputs become answers, and a notice; `original`: how that one is read."""
    settled, notice = side.kind.settle(side, outputs, stated, whose, original)
    return settled.reader(settled.form), notice


def scores_form(
    side: ModelInterface,
    stated: str,
    outputs: Sequence[Any],
    whose: str,
    original: AnswerReader | None,
) -> tuple[OutputKind, str]:
    """Return what a model's scores are, as stated or by its outputs on the seeds, and a notice.

    `original`: how those of the original are read; None for the original itself. Only its outputs tell
    sigmoids from probabilities: a deployed model that is wrong may have any sum.
    """
    if side.labels_only:
        return "label", ""
    if side.repair is not None:
        return "probabilities", ""
    if has_one_value(side.output) and stated in SINGLE_KINDS:
        return SINGLE_KINDS[stated], ""
    if stated != "auto":
        return cast("OutputKind", stated), ""
    kind = detect_kind(side.output, outputs)
    if kind != "probabilities" or (original is not None and original.kind == "sigmoid"):
        return ("sigmoid" if kind == "probabilities" else kind), ""
    off = largest_sum_error(side.output, outputs)
    if off <= _SUM_TOLERANCE:
        return kind, ""
    if original is None:
        return "sigmoid", (
            f"the {whose} model's outputs are taken for independent sigmoids, since all lie in [0, "
            f"1], and their sum is up to {off:.2g} off 1; they are divided by their sum. State "
            "`--task multi-label` if several classes may be meant, `--output logits` if they are none, "
            "`--output probabilities` to leave them as they are"
        )
    return kind, (
        f"the {whose} model's outputs are taken for probabilities, since all lie in [0, 1], but "
        f"their sum is up to {off:.2g} off 1; state `--output logits` if they are none"
    )
