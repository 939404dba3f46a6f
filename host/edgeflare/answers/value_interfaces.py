"""Two models that answer with real values: maps, embeddings and vectors."""

from collections.abc import Sequence
from math import prod

from edgeflare._internal.text import names_text, shape_text
from edgeflare.answers.interface import Comparison, ModelInterface, ModelOutputs
from edgeflare.answers.measures import MEASURES_OF_VALUES
from edgeflare.answers.scores import SCORES
from edgeflare.answers.value_outputs import load_gallery
from edgeflare.answers.values import DEFAULT_MEASURES, VALUES, ValuesConfig
from edgeflare.errors import ModelError, UsageError
from edgeflare.types import Task
from edgeflare_agent.image_spec import TensorInfo

_Shape = tuple[int | None, ...]


def value_interfaces(
    values: ValuesConfig, task: Task, original: ModelOutputs, deployed: ModelOutputs
) -> tuple[ModelInterface, ModelInterface]:
    """Return the interfaces of two models that return values; with a gallery they have classes.

    Of maps the deployed model's channels may be at the other end than the original's; its answers
    are brought to the original's layout. Where either returns labels, as integers without
    channels, both are compared as label maps. Raises ModelError and UsageError where outputs and
    settings don't fit.
    """
    models = original, deployed
    outputs = _outputs(task, original), _outputs(task, deployed)
    if task == "dense":
        return _maps(values, models, (outputs[0][0], outputs[1][0]))
    _check_same_shapes(*outputs)
    path = values.gallery
    fitting = MEASURES_OF_VALUES[values.measure or DEFAULT_MEASURES[task]].tasks
    if task not in fitting:
        raise UsageError(
            f"--measure {values.measure} is for --task {' or '.join(fitting)}, and these models answer with "
            f"{VALUES.tasks[task]} ({task}): take --measure {DEFAULT_MEASURES[task]}"
        )
    if path is None:
        _check_tolerances(values.tolerances, outputs[0])
        compared = Comparison(value_rules=values.rules(DEFAULT_MEASURES[task]))
        first, second = (
            ModelInterface(
                one.spec, found[0], kind=VALUES, task=task, outputs=found, compared=compared
            )
            for one, found in zip(models, outputs, strict=True)
        )
        return first, second
    if values.measure is not None:
        raise UsageError(
            "with a gallery embeddings are compared by the nearest entry: leave --measure or --gallery out"
        )
    size = _size(outputs[0])
    if size is None:
        raise ModelError(
            f"output {outputs[0][0].name!r} of {original.whose} has shape {shape_text(outputs[0][0].shape)}: for "
            "a gallery, export the model with a fixed number of values"
        )
    gallery = load_gallery(path, size)
    compared = Comparison(gallery=gallery, gallery_path=path)
    first, second = (
        ModelInterface(one.spec, found[0], len(gallery), SCORES, compared=compared)
        for one, found in zip(models, outputs, strict=True)
    )
    return first, second


def _outputs(task: Task, model: ModelOutputs) -> tuple[TensorInfo, ...]:
    """Return the outputs that are read together. Raises ModelError where they don't fit the task."""
    if task == "vector":
        return tuple(model.named)
    return (model.single(f"the {task} answer ({VALUES.tasks[task]})"),)


def _maps(
    values: ValuesConfig,
    models: tuple[ModelOutputs, ModelOutputs],
    outputs: tuple[TensorInfo, TensorInfo],
) -> tuple[ModelInterface, ModelInterface]:
    for model, output in zip(models, outputs, strict=True):
        if len([size for size in _shape(output) if size != 1]) < 2:
            raise ModelError(
                f"output {output.name!r} of {model.whose} has shape {shape_text(output.shape)} and is no map; "
                "state --task vector, or leave --task out where these are scores of classes"
            )
    ours, theirs = map(_shape, outputs)
    labels = tuple(map(_are_labels, outputs))
    by_labels = (values.measure or DEFAULT_MEASURES["dense"]) == "labels"
    stated = values.axis
    if stated is not None and all(labels):
        raise UsageError(
            "--channel-axis is stated, and the models' outputs have labels and no channels: leave it out"
        )
    axis = _channel_axis(stated, models[0], outputs[0], None if any(labels) else theirs)
    axes = axis, axis
    moved: tuple[int, int] | None = None
    if by_labels and any(labels):
        axes = axis, _channel_axis(stated, models[1], outputs[1], None)
        planes = [_plane(_shape(one), at) for one, at in zip(outputs, axes, strict=True)]
        if not _are_alike(*planes):
            raise _differing((outputs[0],), (outputs[1],))
    elif not _are_alike(ours, theirs):
        moved = _other_layout(ours, theirs)
        if moved is None:
            raise _differing((outputs[0],), (outputs[1],))
    first, second = (
        ModelInterface(
            model.spec,
            output,
            kind=VALUES,
            task="dense",
            outputs=(output,),
            compared=Comparison(
                value_rules=values.rules(DEFAULT_MEASURES["dense"], None if whole else at),
                moved_axes=move,
                as_labels=by_labels and any(labels),
            ),
        )
        for model, output, whole, at, move in zip(
            models, outputs, labels, axes, (None, moved), strict=True
        )
    )
    return first, second


def _shape(tensor: TensorInfo) -> _Shape:
    """Return the shape of one sample's answer, without the batch."""
    shape = tuple(tensor.shape)
    return shape[1:] if len(shape) > 1 and shape[0] in (1, None) else shape


def _are_labels(tensor: TensorInfo) -> bool:
    """Whether a map has a label for each pixel: integers of no quantisation, and no channels."""
    whole = tensor.quantization is None and "int" in tensor.dtype
    return whole and len([size for size in _shape(tensor) if size != 1]) <= 2


def _channel_axis(
    stated: int | None, model: ModelOutputs, output: TensorInfo, other: _Shape | None
) -> int | None:
    """Return the axis of the channels of a map; None: it has labels.

    Without one that is stated, it is that which leaves the size of the input, or which `other`,
    the deployed model's shape, has at its other end; else that of the input's layout. Raises
    UsageError where the stated one is none of this output.
    """
    shape, images = _shape(output), model.image_spec
    if _are_labels(output):
        return None
    if stated is not None and (stated >= len(shape) or len(shape) < 3):
        raise UsageError(
            f"--channel-axis is {stated}, and output {output.name!r} of {model.whose} has shape "
            f"{shape_text(output.shape)}, whose first axis is the batch: "
            + (f"state 0 to {len(shape) - 1}, or -1" if len(shape) > 2 else "leave it out")
        )
    if stated is not None:
        return stated
    if output.name in model.unbatched:
        return -1  # time first: [time, 1, symbols]
    if other is not None and not _are_alike(shape, other):
        moved = _other_layout(shape, other)
        if moved is not None:
            return -1 if moved[0] == 0 else 0
    size = model.size
    if images is not None and (shape[-2:] == size) != (shape[:2] == size):
        return 0 if shape[-2:] == size else -1
    return -1 if images is not None and images.layout == "HWC" else 0


def _other_layout(ours: _Shape, theirs: _Shape) -> tuple[int, int] | None:
    """Return from which axis to which the deployed model's channels move; None: neither fits."""
    if len(ours) != len(theirs) or len(ours) < 3:
        return None
    if _are_alike(ours, (theirs[-1], *theirs[:-1])):
        return -1, 0
    return (0, -1) if _are_alike(ours, (*theirs[1:], theirs[0])) else None


def _plane(shape: _Shape, axis: int | None) -> _Shape:
    """Return the shape of a map of labels, without axes of size 1."""
    if axis is not None and len(shape) > 2:
        shape = tuple(size for at, size in enumerate(shape) if at != axis % len(shape))
    return tuple(size for size in shape if size != 1)


def _are_alike(ours: _Shape, theirs: _Shape) -> bool:
    pairs = list(zip(ours, theirs, strict=False))
    return len(ours) == len(theirs) and all(a in (None, b) or b is None for a, b in pairs)


def _check_same_shapes(original: Sequence[TensorInfo], deployed: Sequence[TensorInfo]) -> None:
    """Raise ModelError where two models' outputs of values differ in number or shape."""
    if len(original) != len(deployed) or not all(
        _are_alike(_shape(ours), _shape(theirs))
        for ours, theirs in zip(original, deployed, strict=True)
    ):
        raise _differing(original, deployed)


def _differing(original: Sequence[TensorInfo], deployed: Sequence[TensorInfo]) -> ModelError:
    ours, theirs = (
        names_text([shape_text(output.shape) for output in outputs])
        for outputs in (original, deployed)
    )
    return ModelError(
        f"the original model returns values of shape {ours} and the deployed model {theirs}: they are not two "
        "versions of one model, or their layouts differ; export both alike"
    )


def _size(outputs: Sequence[TensorInfo]) -> int | None:
    """Return the number of values of a sample; None: a size is open."""
    sizes = [size for output in outputs for size in _shape(output)]
    if None in sizes:
        return None
    return sum(prod(size or 0 for size in _shape(output)) for output in outputs)


def _check_tolerances(tolerances: Sequence[float], outputs: Sequence[TensorInfo]) -> None:
    size = _size(outputs)
    if tolerances and size is not None and len(tolerances) != size:
        raise UsageError(
            f"the models return {size} values, and there are {len(tolerances)} tolerances: state one for each in "
            "the table [values]"
        )
