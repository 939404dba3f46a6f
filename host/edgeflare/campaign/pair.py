"""The two models of a campaign, brought to one understanding of inputs and outputs."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from edgeflare.campaign.config import CampaignConfig, ModelConfig
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.pair_outputs import (
    TextSource,
    check_both_transcribe,
    check_no_frames,
    choose_output,
    original_classes,
    tells_label,
    text_source,
)
from edgeflare.devices import Reply, State, SteadySession
from edgeflare.errors import UsageError
from edgeflare.models import (
    AudioSpec,
    InputOptions,
    InputSpec,
    OriginalModel,
    OutputKind,
    OutputReader,
    RawOutput,
    Spec,
    TensorInfo,
    detect_kind,
    known_of,
    largest_sum_error,
    resolve_input,
    unread,
)
from edgeflare.models.input_options import contradiction, options_in_file, scaling_of_range
from edgeflare.types import Output, Sample, Transcript

_SUM_TOLERANCE = 0.02


class Side(NamedTuple):
    """One model as the campaign sees it: how samples enter it, which output counts, and for how many classes.

    `labels_only`: the output is a class index, not a score for each class. `transcribes`: it is a transcript, and there
    are no classes; `decoder` is what identifies the way to it. `doubt`: how what is stated contradicts the model's file.
    """

    spec: Spec
    output: TensorInfo
    classes: int = 0
    labels_only: bool = False
    transcribes: bool = False
    decoder: Mapping[str, Any] | None = None
    doubt: str = ""

    def reader(self, kind: OutputKind) -> OutputReader:
        """Return how its raw outputs become answers."""
        return OutputReader(self.output, kind, self.classes)


class DeployedModel:
    """The deployed model on one device; where `reader` is None its scores are raw outputs."""

    def __init__(self, session: SteadySession, reader: OutputReader | None) -> None:
        self._session = session
        self._read = unread if reader is None else reader.read

    @property
    def name(self) -> str:
        """The device's."""
        return self._session.name

    @property
    def depth(self) -> int:
        """The number of requests in flight that keeps the device busy."""
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

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply[Output]]":
        """Queue a request; its samples are inferred one by one on the device."""
        return self._session.submit(samples, self._read)


class CountedDevice:
    """A device that is asked to measure something; `asked` counts the samples."""

    def __init__(self, session: SteadySession) -> None:
        self._session = session
        self.name = session.name
        self.fingerprint = session.fingerprint
        self.asked = 0

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply[RawOutput]]":
        """Queue a request without waiting for anything."""
        self.asked += len(samples)
        return self._session.submit(samples)


class RawOriginal:
    """The original model, whose answers are raw outputs."""

    def __init__(self, original: OriginalModel) -> None:
        self._original = original

    def answer(self, samples: Sequence[Sample]) -> tuple[list[Output], list[float]]:
        """Return one raw output, or transcript, a sample, and the seconds of each."""
        raws, seconds = self._original.raw_answer(samples)
        return [unread(raw) for raw in raws], seconds


def resolve_pair(
    config: CampaignConfig, original: OriginalModel, fleet: Fleet
) -> tuple[Side, Side]:
    """Return both models' input specs and outputs; configure the original and every device with them.

    A pixel scaling that a file doesn't tell and the user doesn't state is taken from the other model,
    since both were made for the same inputs. Raises UsageError or ModelError where the two don't fit.
    """
    model = fleet.sessions[0].model
    texts = (
        text_source(original.outputs, config.original, original.decoder, "the original model"),
        text_source(model.outputs, config.deployed, model.decoder, "the deployed model"),
    )
    check_both_transcribe(texts, (original.outputs, model.outputs))
    first, second = original.input, model.inputs[0]
    told = (
        _told(original.metadata, first, config.original),
        _told(model.metadata, second, config.deployed),
    )
    specs = (
        resolve_input(
            first,
            config.original.input,
            known_of(told[0], config.deployed.input, told[1]),
            "the original model",
        ),
        resolve_input(
            second,
            config.deployed.input,
            known_of(told[1], config.original.input, told[0]),
            "the deployed model",
        ),
    )
    _check_inputs(*specs)
    if texts[0] is not None and texts[1] is not None:
        sides = _hearing(specs[0], texts[0]), _hearing(specs[1], texts[1])
    else:
        sides = _scoring(config, specs, (original.outputs, model.outputs))
    sides = (
        sides[0]._replace(
            doubt=_doubt(original.metadata, first, config.original, "the original model")
        ),
        sides[1]._replace(
            doubt=_doubt(model.metadata, second, config.deployed, "the deployed model")
        ),
    )
    decoders = [None if text is None else text.decoder for text in texts]
    original.configure(sides[0].spec, sides[0].output.name, decoders[0])
    for session in fleet:
        session.configure(sides[1].spec, sides[1].output.name, decoders[1])
    return sides


def _hearing(spec: Spec, text: TextSource) -> Side:
    return Side(spec, text.output, transcribes=True, decoder=text.identity)


def _scoring(
    config: CampaignConfig,
    specs: tuple[Spec, Spec],
    outputs: tuple[Sequence[TensorInfo], Sequence[TensorInfo]],
) -> tuple[Side, Side]:
    """Return the sides of two models that return scores. Raises ModelError where they don't fit."""
    first = choose_output(outputs[0], config.original, "the original model")
    second = choose_output(outputs[1], config.deployed, "the deployed model")
    for spec, output, whose in zip(specs, (first, second), ("original", "deployed"), strict=True):
        if isinstance(spec, AudioSpec):
            check_no_frames(output, f"the {whose} model")
    classes = original_classes(first, config.original)
    labels_only = tells_label(second, config.deployed, classes)
    return Side(specs[0], first, classes), Side(specs[1], second, classes, labels_only)


def readers(
    config: CampaignConfig,
    sides: tuple[Side, Side],
    raws: tuple[Sequence[Output], Sequence[Output]],
) -> tuple[tuple[OutputReader, OutputReader], list[str]]:
    """Return how each model's raw outputs become answers, as stated or as inferred from those on the seeds.

    The second value has what the user should know of what was told.
    """
    read = []
    doubts = [side.doubt for side in sides if side.doubt]
    for whose, side, outputs, model in zip(
        ("original", "deployed"), sides, raws, (config.original, config.deployed), strict=True
    ):
        kind: OutputKind
        if side.transcribes:
            read.append(side.reader("transcript"))
            continue
        plain = [one for one in outputs if not isinstance(one, Transcript)]
        if side.labels_only:
            kind = "label"
        else:
            kind = detect_kind(side.output, plain) if model.output == "auto" else model.output
        read.append(side.reader(kind))
        off = largest_sum_error(side.output, plain)
        if model.output == "auto" and kind == "probabilities" and off > _SUM_TOLERANCE:
            doubts.append(
                f"the {whose} model's outputs are taken for probabilities, since all lie in [0, 1], but "
                f"their sum is up to {off:.2g} off 1; state `--output logits` if they are none"
            )
    return (read[0], read[1]), doubts


def _told(metadata: Mapping[str, str], tensor: TensorInfo, config: ModelConfig) -> InputOptions:
    """Return the input options in a model's file: its metadata, and the scaling implied by its quantisation."""
    in_file = options_in_file(metadata, str(config.path))
    return known_of(in_file, scaling_of_range(tensor), InputOptions())


def _doubt(metadata: Mapping[str, str], tensor: TensorInfo, config: ModelConfig, whose: str) -> str:
    in_file = options_in_file(metadata, str(config.path))
    return contradiction(tensor, config.input, in_file, whose)


def _check_inputs(original: Spec, deployed: Spec) -> None:
    """Raise UsageError where one sample can't be given to both models."""
    if isinstance(original, AudioSpec) and isinstance(deployed, AudioSpec):
        _check_clips(original, deployed)
    elif isinstance(original, InputSpec) and isinstance(deployed, InputSpec):
        _check_images(original, deployed)
    else:
        hears, sees = "original", "deployed"
        if isinstance(deployed, AudioSpec):
            hears, sees = sees, hears
        raise UsageError(
            f"the {hears} model takes audio and the {sees} model images; EdgeFlare gives both the same sample"
        )


def _check_clips(original: AudioSpec, deployed: AudioSpec) -> None:
    if original.rate != deployed.rate:
        raise UsageError(
            f"the original model takes audio at {original.rate} Hz and the deployed model at {deployed.rate} Hz; "
            "EdgeFlare gives both the same sample"
        )
    lengths = original.samples, deployed.samples
    if None not in lengths and lengths[0] != lengths[1]:
        raise UsageError(
            f"the original model takes {lengths[0]} samples and the deployed model {lengths[1]}; EdgeFlare gives both "
            "the same clip, of which neither may miss a part: state the same `samples` of both inputs"
        )


def _check_images(original: InputSpec, deployed: InputSpec) -> None:
    channels = original.channels, deployed.channels
    if channels[0] != channels[1]:
        raise UsageError(
            f"the original model takes {channels[0]} channels and the deployed model {channels[1]}; "
            "EdgeFlare gives both the same sample"
        )
    sizes = original.size, deployed.size
    if sizes[0] != sizes[1] and deployed.resize is None:
        raise UsageError(
            f"the original model takes {sizes[0][0]} x {sizes[0][1]} pixels and the deployed model "
            f"{sizes[1][0]} x {sizes[1][1]}; state how its input is brought to size with "
            "`--deployed-input resize=bilinear`"
        )
