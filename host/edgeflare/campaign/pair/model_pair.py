"""The two models of a campaign, brought to one understanding of inputs and outputs."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare._internal.flags import ForTasks, flags_in
from edgeflare.answers import KINDS, SCORES, AnswerKind, kind_of_output, kind_of_task
from edgeflare.answers.interface import ModelInterface, ModelOutputs
from edgeflare.answers.outputs import load_repair
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.pair.inputs import (
    check_inputs,
    chosen_input,
    feed_notice,
    inferred_input,
    other_order,
    resolve_inputs,
    unusable_notice,
)
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.devices import LoadedModel, ReconnectingSession, Reply
from edgeflare.errors import InferenceFailedError, UsageError
from edgeflare.models import (
    AnswerReader,
    DetectorOptions,
    InputSpec,
    OriginalModel,
    RawOutput,
    Spec,
    TensorInfo,
    as_output,
    is_batch_open,
)
from edgeflare.models.image_input import contradiction
from edgeflare.store.database import decoding
from edgeflare.types import Issue, Output, Query, Sample, Task
from edgeflare.words.preflight import sentence


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


def _unbatched_outputs(original: OriginalModel, spec: Spec) -> frozenset[str]:
    """Return the names of the original's outputs whose first axis is no batch, such as [time, 1, symbols].

    Some have more than 1 there in the file. Others have it open, though the model takes one sample
    alone: a blank one tells.
    """
    found = {one.name for one in original.outputs if _has_other_first_axis(one)}
    is_open = [one.name for one in original.outputs if len(one.shape) > 1 and not one.shape[0]]
    if not is_open or is_batch_open(original.inputs):
        return frozenset(found)
    if isinstance(spec, InputSpec):
        blank: Sample = np.zeros((*spec.upright_size, spec.channels), np.uint8)
    else:
        blank = np.zeros(spec.samples or spec.rate, np.float32)
    original.configure(spec, is_open)
    try:
        raws = original.raw(blank)
    except InferenceFailedError:
        return frozenset(found)
    for name, raw in zip(is_open, raws, strict=True):
        if isinstance(raw, np.ndarray) and raw.ndim > 1 and raw.shape[0] > 1:
            found.add(name)
    return frozenset(found)


def _unbatched_like(
    outputs: Sequence[TensorInfo], original: Sequence[TensorInfo], names: frozenset[str]
) -> frozenset[str]:
    """Return the names of a deployed model's outputs whose first axis is no batch.

    Where its file leaves that open, those of the original's shape are as the original's `names`.
    """
    shapes = {one.shape[1:] for one in original if one.name in names}
    return frozenset(
        output.name
        for output in outputs
        if _has_other_first_axis(output)
        or (output.shape[:1] == (None,) and output.shape[1:] in shapes)
    )


def _has_other_first_axis(tensor: TensorInfo) -> bool:
    return len(tensor.shape) > 1 and tensor.shape[0] not in (None, 0, 1)


def _with_batch(tensors: Sequence[TensorInfo], unbatched: frozenset[str]) -> list[TensorInfo]:
    """Return outputs with a batch axis of 1 before the others where the file has none."""
    return [
        tensor._replace(shape=(1, *tensor.shape)) if tensor.name in unbatched else tensor
        for tensor in tensors
    ]


def _outputs(model: OriginalModel | LoadedModel, config: ModelConfig, whose: str) -> ModelOutputs:
    """Return a model's outputs before its inputs are known."""
    return ModelOutputs(
        model.outputs, model.metadata, config, whose, in_file=model.outputs, decoder=model.decoder
    )


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
    files = (
        _outputs(original, config.original, whose[0]),
        _outputs(model, config.deployed, whose[1]),
    )
    for kind in KINDS:
        kind.check_files(config.task, *files)
    chosen = (
        chosen_input(config.original, original.inputs, whose[0]),
        chosen_input(config.deployed, model.inputs, whose[1]),
    )
    first, second = chosen[0].tensor, chosen[1].tensor
    inferences = (
        inferred_input(config.original, original.inputs, original.metadata, chosen[0]),
        inferred_input(config.deployed, model.inputs, model.metadata, chosen[1]),
    )
    configs = config.original, config.deployed
    specs, feeds = resolve_inputs(configs, (first, second), inferences)
    check_inputs(*specs)
    original.fix_inputs(chosen[0].given)
    unbatched = _unbatched_outputs(original, specs[0])
    unbatched_there = _unbatched_like(model.outputs, original.outputs, unbatched)
    outputs = [
        outputs._replace(
            tensors=_with_batch(outputs.tensors, open_axes),
            spec=spec,
            parts=choice.given.parts,
            unbatched=open_axes,
        )
        for outputs, spec, choice, open_axes in zip(
            files, specs, chosen, (unbatched, unbatched_there), strict=True
        )
    ]
    kind, task, reason = _task(config.task, *outputs)
    _check_settings(config, kind, task)
    sides = kind.interfaces(task, config.settings_of(kind), *outputs)
    sides = (
        sides[0]._replace(
            doubt=contradiction(first, config.original.input, inferences[0].in_file, whose[0])
            or unusable_notice(inferences[0], config.original.path),
            feed=None if feeds[0] is None else feeds[0].told_by(),
            inferred=reason or sides[0].inferred,
            chosen=chosen[0],
        ),
        sides[1]._replace(
            doubt=contradiction(second, config.deployed.input, inferences[1].in_file, whose[1])
            or unusable_notice(inferences[1], config.deployed.path)
            or other_order(*chosen),
            feed=None if feeds[1] is None else feeds[1].told_by(),
            chosen=chosen[1],
        ),
    )
    sides = sides[0], _repaired(sides[1], config)
    original.configure(sides[0].spec, sides[0].asked, sides[0].sent_decoder)
    for session in fleet:
        session.configure(
            sides[1].spec,
            sides[1].asked,
            sides[1].sent_decoder,
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
    kind, is_nearest = deployed.kind, deployed.compared.gallery is not None
    if is_nearest or not (deployed.classes and kind.is_scored):
        raise UsageError(
            f"the repair {config.deployed.repair} replaces the scores of classes, and the deployed "
            f"model returns {'no score for each' if is_nearest else kind.noun}; leave it out"
        )
    if repair.size != deployed.classes:
        raise UsageError(
            f"the repair {config.deployed.repair} is for {repair.size} classes, and the deployed "
            f"model has {deployed.classes}; make one for this model"
        )
    return deployed._replace(output=repair.announced(deployed.output.name), repair=repair)


def _task(
    stated: Task, original: ModelOutputs, deployed: ModelOutputs
) -> tuple[AnswerKind[Any], Task, str]:
    """Return the kind and the task, as stated or by the outputs, and the reason; "": it is stated.

    Raises ModelError for formats that are known and not supported.
    """
    if stated != "auto":
        return kind_of_task(stated), stated, ""
    for kind in KINDS:
        reason = kind.suits(original, deployed)
        if reason is not None:
            return kind, next(iter(kind.tasks)), reason
    return SCORES, next(iter(SCORES.tasks)), ""


def _check_settings(config: CampaignConfig, kind: AnswerKind[Any], task: Task) -> None:
    """Raise UsageError where something is stated that answers of this task don't have."""
    answers = f"{kind.tasks[task]} ({task})"
    tables = {answered.settings for answered in KINDS}
    for section, table in config:
        for name, field in type(table).model_fields.items() if type(table) in tables else ():
            fitting = [
                task for mark in field.metadata if isinstance(mark, ForTasks) for task in mark.tasks
            ]
            if fitting and task not in fitting and getattr(table, name) != field.default:
                flag = next((flag.name for flag in flags_in(field)), f"{name} in [{section}]")
                raise UsageError(
                    f"{flag} is for --task {', '.join(sorted(fitting))}, and these models answer with "
                    f"{answers}: leave it out, or state the task"
                )
    for whose, model in (("original", config.original), ("deployed", config.deployed)):
        if model.output not in kind.stated_outputs:
            raise UsageError(
                f"the {whose} model is stated to return {model.output} (--output), and these models "
                f"answer with {answers}: leave it out, or state another --task"
            )
        if model.decoder is not None and task != model.decoder.task:
            raise UsageError(
                f"the decoder that is stated for the {whose} model is for --task {model.decoder.task}, and "
                f"these models answer with {answers}: leave it out, or state the task"
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
    paths = config.original.path, config.deployed.path
    notices = [feed_notice(side, path) for side, path in zip(sides, paths, strict=True)]
    doubts += [notice for notice in dict.fromkeys(notices) if notice]
    for whose, side, outputs, model in zip(
        ("original", "deployed"), sides, raws, (config.original, config.deployed), strict=True
    ):
        reader, doubt = _reader(side, model.output, outputs, whose, read[0] if read else None)
        read.append(reader)
        doubts += [doubt] if doubt else []
    return (read[0], read[1]), doubts


def original_reader(
    config: CampaignConfig, side: ModelInterface, raws: Sequence[Output]
) -> AnswerReader:
    """Return how the original's raw outputs become answers, as `readers` does."""
    return _reader(side, config.original.output, raws, "original", None)[0]


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


def class_names_notice(
    config: CampaignConfig, names: Sequence[str] | None, original: AnswerReader
) -> str | None:
    """Return a notice where the stated names are not as many as the classes; None: they are.

    None, too, where the outputs don't tell the number of classes.
    """
    if config.detection.class_names is None or names is None:
        return None
    classes = getattr(original, "classes", 0)
    if classes < 1 or len(names) == classes:
        return None
    data = {"file": str(config.detection.class_names), "names": len(names), "classes": classes}
    return sentence(Issue("class-names", "warning", data, {"detection.class_names": None}))


def stored_reader(side: ModelInterface, output: Mapping[str, Any], folder: Path) -> AnswerReader:
    """Return the reader of a model of a campaign that has begun, by its stored `model_identity`.

    Raises StoreError where that is damaged in the campaign `folder`.
    """
    form, detector = stored_format(output, folder)
    return (side if detector is None else side._replace(detector=detector)).reader(form)


def stored_format(output: Mapping[str, Any], folder: Path) -> tuple[str, DetectorOptions | None]:
    """Return what outputs are, by the stored `model_identity` of a campaign in `folder`.

    The format is that of a detector. Raises StoreError where either is damaged.
    """
    with decoding(folder, "what is known of the models"):
        form, detector = output["kind"], output.get("detector")
        kind_of_output(form)
        return form, None if detector is None else DetectorOptions.model_validate(detector)
