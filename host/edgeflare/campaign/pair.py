"""The two models of a campaign, brought to one understanding of inputs and outputs."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from numpy.typing import NDArray

from edgeflare.campaign.config import CampaignConfig, ModelConfig
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.pair_outputs import choose_output, original_classes, tells_label
from edgeflare.devices import State, SteadySession
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import (
    InputOptions,
    InputSpec,
    OriginalModel,
    OutputKind,
    OutputReader,
    TensorInfo,
    detect_kind,
    largest_sum_error,
    resolve_input,
)
from edgeflare.models.input_options import options_in_file, scaling_of_range
from edgeflare.scheduler import Reply
from edgeflare.types import Sample

_SUM_TOLERANCE = 0.02


class Side(NamedTuple):
    """One model as the campaign sees it: how samples enter it, which output counts, and for how many classes.

    `labels_only`: the output is a class index, not a score for each class.
    """

    spec: InputSpec
    output: TensorInfo
    classes: int = 0
    labels_only: bool = False

    def reader(self, kind: OutputKind) -> OutputReader:
        """Return how its raw outputs become scores."""
        return OutputReader(self.output, kind, self.classes)


class DeployedModel:
    """The deployed model on one device, answering with scores, or with raw outputs where `reader` is None."""

    def __init__(self, session: SteadySession, reader: OutputReader | None) -> None:
        self._session = session
        self._reader = reader

    @property
    def name(self) -> str:
        """The device's."""
        return self._session.name

    @property
    def depth(self) -> int:
        """Requests in flight that keep the device busy."""
        return self._session.depth

    @property
    def state(self) -> State:
        """Whether the device answers."""
        return self._session.state

    @property
    def away_s(self) -> float:
        """For how many seconds it has not been reached."""
        return self._session.away_s

    @property
    def detail(self) -> str:
        """Why it isn't reached."""
        return self._session.detail

    def withdraw(self) -> None:
        """Fail what is pending with DeviceAwayError."""
        self._session.withdraw()

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        """Queue a request; its samples are inferred one by one on the device."""
        answered: Future[Reply] = Future()

        def read(pending: "Future[Any]") -> None:
            error = pending.exception()
            if error is not None:
                answered.set_exception(error)
                return
            raw = pending.result()
            try:
                scores = [
                    output if self._reader is None else self._reader.scores(output)
                    for output in raw.outputs
                ]
            except ModelError as fault:
                answered.set_exception(fault)
                return
            except Exception as fault:  # noqa: BLE001 - whatever it is, somebody waits for it
                answered.set_exception(
                    ModelError(f"an output of the deployed model can't be read: {fault}")
                )
                return
            answered.set_result(Reply(scores, raw.seconds))

        self._session.submit(samples).add_done_callback(read)
        return answered


class RawOriginal:
    """The original model, answering with raw outputs in place of scores."""

    def __init__(self, original: OriginalModel) -> None:
        self._original = original

    def scores(self, samples: Sequence[Sample]) -> list[NDArray[Any]]:
        """Return one raw output a sample."""
        return [self._original.raw(sample) for sample in samples]


def resolve_pair(
    config: CampaignConfig, original: OriginalModel, fleet: Fleet
) -> tuple[Side, Side]:
    """Return both models' input specs and outputs; configure the original and every device with them.

    A pixel scaling that a file doesn't tell and the user doesn't state is taken from the other model,
    since both were made for the same inputs. Raises UsageError or ModelError where the two don't fit.
    """
    model = fleet.sessions[0].model
    first, second = original.input, model.inputs[0]
    told = (
        _told(original.metadata, first, config.original),
        _told(model.metadata, second, config.deployed),
    )
    outputs = (
        choose_output(original.outputs, config.original, "the original model"),
        choose_output(model.outputs, config.deployed, "the deployed model"),
    )
    classes = original_classes(outputs[0], config.original)
    labels_only = tells_label(outputs[1], config.deployed, classes)
    sides = (
        Side(
            resolve_input(
                first,
                config.original.input,
                _prefer(told[0], config.deployed.input, told[1]),
                "the original model",
            ),
            outputs[0],
            classes,
        ),
        Side(
            resolve_input(
                second,
                config.deployed.input,
                _prefer(told[1], config.original.input, told[0]),
                "the deployed model",
            ),
            outputs[1],
            classes,
            labels_only,
        ),
    )
    _check_inputs(*sides)
    original.configure(sides[0].spec, sides[0].output)
    for session in fleet:
        session.configure(sides[1].spec, sides[1].output.name)
    return sides


def readers(
    config: CampaignConfig,
    sides: tuple[Side, Side],
    raws: tuple[Sequence[NDArray[Any]], Sequence[NDArray[Any]]],
) -> tuple[tuple[OutputReader, OutputReader], list[str]]:
    """Return how each model's raw outputs become scores, as stated or told from those on the seeds.

    The second value has what the user should know of what was told.
    """
    read = []
    doubts = []
    for whose, side, outputs, model in zip(
        ("original", "deployed"), sides, raws, (config.original, config.deployed), strict=True
    ):
        kind: OutputKind
        if side.labels_only:
            kind = "label"
        else:
            kind = detect_kind(side.output, outputs) if model.output == "auto" else model.output
        read.append(side.reader(kind))
        off = largest_sum_error(side.output, outputs)
        if model.output == "auto" and kind == "probabilities" and off > _SUM_TOLERANCE:
            doubts.append(
                f"the {whose} model's outputs are taken for probabilities, since all lie in [0, 1], but "
                f"their sum is up to {off:.2g} off 1; state `--output logits` if they are none"
            )
    return (read[0], read[1]), doubts


def _told(metadata: Mapping[str, str], tensor: TensorInfo, config: ModelConfig) -> InputOptions:
    """Return what a model's own file tells: its metadata, and its quantisation for the scaling."""
    in_file = options_in_file(metadata, str(config.path))
    return in_file if in_file.tells_scaling else _scaled_as(in_file, scaling_of_range(tensor))


def _prefer(own: InputOptions, stated: InputOptions, other: InputOptions) -> InputOptions:
    """Return the model's own description; its scaling may be what is stated, or told, for the other."""
    if own.tells_scaling:
        return own
    return _scaled_as(own, stated if stated.tells_scaling else other)


def _scaled_as(options: InputOptions, scaling: InputOptions) -> InputOptions:
    return options.model_copy(
        update={"scale": scaling.scale, "mean": scaling.mean, "std": scaling.std}
    )


def _check_inputs(original: Side, deployed: Side) -> None:
    channels = original.spec.channels, deployed.spec.channels
    if channels[0] != channels[1]:
        raise UsageError(
            f"the original model takes {channels[0]} channels and the deployed model {channels[1]}; "
            "EdgeFlare gives both the same sample"
        )
    sizes = original.spec.size, deployed.spec.size
    if sizes[0] != sizes[1] and deployed.spec.resize is None:
        raise UsageError(
            f"the original model takes {sizes[0][0]} x {sizes[0][1]} pixels and the deployed model "
            f"{sizes[1][0]} x {sizes[1][1]}; state how its input is brought to size with "
            "`--deployed-input resize=bilinear`"
        )
