"""A campaign's original as a graph, and the inputs that it is inspected with."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from edgeflare._internal import extras
from edgeflare._internal.files import file_sha256
from edgeflare._internal.text import counted
from edgeflare.analysis import Analysis, RunContext, WithUnitScores, run_analysis
from edgeflare.answers import AnswerKind, kind_of_output
from edgeflare.campaign import Event, Stage, Step
from edgeflare.campaign.settings.flags import Flag
from edgeflare.document import Block, Name, Section
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import AnswerReader, AudioSpec, OutputReader, Spec, TensorInfo, spec_from_json
from edgeflare.models.tensors import ModelGraph, open_graph
from edgeflare.seeds import SeedSource, open_audio_seeds, open_seeds
from edgeflare.seeds.audio_files import Cut
from edgeflare.store import Store, campaign_text
from edgeflare.store.database import decoding
from edgeflare.types import TRIGGERS, Sample
from edgeflare_agent.errors import RequestError
from edgeflare_whitebox.activations import Activations, activations_of, activations_or_errors
from edgeflare_whitebox.words.inspections import NOT_STORED, UNANSWERED

S = TypeVar("S", bound=BaseModel)
R = TypeVar("R")
Tell: TypeAlias = Callable[[str, int, int | None], None]
"""Takes which inputs are run, how many are done, and their number where it is known."""


_UNDECIDED = -1
"""The class of inputs on which the original answers NaN, and of transcripts."""


Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""A share, or another figure from 0 to 1."""
Count: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 62)]
"""A number of things."""
ClassIndex: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 31)]
"""The number of a class."""


@dataclass(frozen=True)
class SetShares:
    """The share that each set of inputs covers, 0 to 1; None of a set without inputs.

    The sets are the seeds, the triggering inputs, the survey's findings, and all of them.
    """

    seeds: Share | None
    triggers: Share | None
    survey: Share | None
    union: Share | None


@dataclass(frozen=True)
class SetCounts:
    """The number of different inputs in each set, see `SetShares`."""

    seeds: int
    triggers: int
    survey: int
    union: int


class Inspection(Analysis[S, R]):
    """An analysis of the original: `compute` is its run, and its one section has what `blocks` returns."""

    title: str
    order: int
    compute: Callable[[Store, S, RunContext], R | WithUnitScores[R]]
    blocks: Callable[[R, Name, Store | None], Iterable[Block]]

    def run(self, campaign: Store, settings: S, context: RunContext) -> R | WithUnitScores[R]:
        """Return the result."""
        return self.compute(campaign, settings, context)

    def sections(self, result: R, names: Name, store: Store | None) -> Iterable[Section]:
        """Yield its section."""
        blocks = (*self.blocks(result, names, store),)
        yield Section(self.name, self.title, blocks, brief=False, order=self.order)


class InspectionSettings(BaseModel, extra="forbid"):
    """What all inspections are told: where the original is now, and the layers, by names of tensors."""

    original: Annotated[Path | None, Flag("--original", metavar="FILE")] = Field(
        None, description="The original model, where it has moved."
    )


class ProfileSettings(InspectionSettings):
    """What inspections are told that compare inputs with profiling inputs."""

    profile: Annotated[Path | None, Flag("--profile", metavar="PATH")] = Field(
        None,
        description="Inputs that the others are compared with, such as training inputs: a folder of images "
        "or audio, one file, or an .npz; by default the campaign's seeds.",
    )
    resize: Annotated[str | None, Flag("--resize", metavar="RULE")] = Field(
        None,
        description="For images in --profile of another size, as of run; by default the campaign's.",
    )
    random_seed: int = 0

    @property
    def profile_path(self) -> str | None:
        """The profile's absolute path, None where the seeds are the profile."""
        return None if self.profile is None else str(self.profile.absolute())


def layers_flag(by_default: str = "all outputs of activation functions") -> Flag:
    """Return the flag that names the layers."""
    return Flag(
        "--layer",
        metavar="TENSOR",
        help=f"A tensor of the original that counts as a layer; may be repeated. By default {by_default}.",
    )


def inspect_campaign(name: str, folder: Path, tell: Tell, **settings: Any) -> Any:
    """Run the analysis of this name; `tell` takes its progress. See `run_analysis`."""
    begun = Stage("", "")

    def progress(event: Event) -> None:
        nonlocal begun
        if isinstance(event, Stage):
            begun = event
            tell(event.name, 0, event.total)
        elif isinstance(event, Step):
            tell(begun.name, event.done, begun.total)

    return run_analysis(name, Path(folder), settings, RunContext(progress=progress))


def kept(
    resume: MutableMapping[str, Any], name: str, make: Callable[[], NDArray[Any]]
) -> NDArray[Any]:
    """Return the array of this name that was made before an interruption; else make it and keep it."""
    if name not in resume:
        made = make()
        data = base64.b64encode(np.ascontiguousarray(made).tobytes()).decode()
        resume[name] = {"type": made.dtype.str, "shape": list(made.shape), "data": data}
    stored = resume[name]
    array: NDArray[Any] = np.frombuffer(base64.b64decode(stored["data"]), stored["type"])
    shaped: NDArray[Any] = array.reshape(stored["shape"]).copy()
    return shaped


def silent(what: str, done: int, total: int | None) -> None:
    """Tell nothing."""
    del what, done, total


class StoredOriginal(NamedTuple):
    """A campaign's original, whose tensors can be read; `path` is its file."""

    path: Path
    graph: ModelGraph
    spec: Spec
    reader: AnswerReader

    @property
    def kind(self) -> AnswerKind[Any]:
        """The kind of its answers."""
        return kind_of_output(self.reader.kind)

    @property
    def returns(self) -> str:
        """What it returns, in place of classes: a verb and its object for an error's sentence."""
        return f"returns {self.kind.noun}"

    def label(self, raw: Any) -> int:
        """Return the class that it decides for."""
        label = self.kind.top_label(self.reader.read(raw)) if self.kind.has_classes else None
        return _UNDECIDED if label is None else label


def original_path(store: Store, moved: Path | None = None) -> Path:
    """Return the file of a campaign's original, which need not be there; `moved` as of `stored_original`."""
    if moved is not None:
        return Path(moved)
    with decoding(store.folder, "what is known of the original"):
        return Path((store.models.get("original") or store.setting("original"))["path"])


def stored_original(store: Store, moved: Path | None = None) -> StoredOriginal:
    """Open the original of a campaign.

    `moved` is the model's file where it isn't where it was. Raises UsageError where the campaign
    has no seeds yet, its original isn't the file that it was run with, or has no tensors that can
    be read.
    """
    known = store.models.get("original")
    if not known or not store.seed_count():
        raise UsageError(
            f"{store.folder} has no seeds yet: go on with `edgeflare resume "
            f"{campaign_text(store.folder)}` first"
        )
    with decoding(store.folder, "what is known of the original"):
        path, digest = Path(known["path"]) if moved is None else Path(moved), str(known["sha256"])
        runtime, output = str(known["runtime"]["name"]), known["output"]
        options = dict(store.setting("original").get("options") or {})
        reader = OutputReader(TensorInfo.from_json(output), output["kind"])
        try:
            spec = spec_from_json(known["input"])
        except RequestError as error:
            raise ValueError(str(error)) from error
    if not path.is_file():
        raise UsageError(
            f"the original model {path} isn't there: name the same file where it is now with --original"
        )
    if file_sha256(path) != digest:
        raise UsageError(
            f"{path} isn't the original model that the campaign in {store.folder} was run with: name that "
            "one with --original, or run a campaign with this one"
        )
    if runtime == "onnx":
        extras.onnx()
    graph = open_graph(path, runtime, options, output["name"])
    return StoredOriginal(path, graph, spec, reader)


def profile_source(store: Store, spec: Spec, settings: ProfileSettings) -> SeedSource | None:
    """Return the profiling inputs, brought to what the campaign's seeds are; None where these are they."""
    if settings.profile is None:
        return None
    path, resize = settings.profile, settings.resize
    stated = store.campaign.get("seeds", {})
    if isinstance(spec, AudioSpec):
        if resize is not None:
            raise UsageError("--resize is for images, and the original takes audio: leave it out")
        cut: Cut = "windows" if stated.get("cut") == "windows" else "first"
        return open_audio_seeds(path, rate=spec.rate, samples=spec.samples, cut=cut, resample=True)
    height, width, channels = store.seed_samples()[0].shape
    rule = resize or stated.get("resize")
    return open_seeds(path, size=(height, width), channels=channels, resize=rule)


def profile_samples(store: Store, source: SeedSource | None) -> tuple[Iterable[Sample], int | None]:
    """Return the profiling inputs and their number, None where it isn't known; without a source the seeds."""
    if source is None:
        return store.seed_samples(), store.seed_count()
    return (seed.sample for seed in source), source.total


def answered_activations(
    model: StoredOriginal,
    samples: Iterable[Sample],
    layers: Sequence[str],
    what: str,
    total: int | None,
    tell: Tell,
    notices: list[str],
) -> Iterator[Activations]:
    """Yield the activations of inputs, without those on which the original can't answer.

    `what` is said of the inputs, `total` is their number where it is known. A notice is added where
    some are left out. Raises ModelError where the original can't answer on any.
    """
    found = activations_of(model.graph, model.spec, samples, layers, label=model.label)
    done, failed, error = 0, 0, None
    if total != 0:
        tell(what, 0, total)
    for done, one in enumerate(activations_or_errors(found), start=1):
        if isinstance(one, ModelError):
            error, failed = one, failed + 1
        else:
            yield one
        tell(what, done, total)
    if error is not None:
        if failed == done:
            raise error
        notices.append(UNANSWERED.format(what, counted(failed, "input"), error))


def input_sets(store: Store) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the digests of a campaign's inputs by sets, each once, in their order, and notices.

    The sets are those of `SetShares` but the union. Survey findings whose samples aren't stored are
    left out; a notice says so. Raises StoreError.
    """
    notices = []
    triggers = (
        outcome.trigger
        for outcome in store.outcomes()
        if outcome.status in TRIGGERS and outcome.trigger is not None
    )
    surveyed = dict.fromkeys(one.sample for one in store.survey(deviating=True))
    stored = tuple(one for one in surveyed if store.has_sample(one))
    if gone := len(surveyed) - len(stored):
        notices.append(NOT_STORED.format(counted(gone, "survey finding")))
    sets = {
        "seeds": tuple(dict.fromkeys(store.seed_samples().digests)),
        "triggers": tuple(dict.fromkeys(triggers)),
        "survey": stored,
    }
    return sets, notices


def set_counts(sets: Mapping[str, Sequence[str]]) -> SetCounts:
    """Return the number of different inputs in sets of digests, of `input_sets`, and in all of them."""
    counts = {which: len(digests) for which, digests in sets.items()}
    return SetCounts(**counts, union=len(set().union(*sets.values())))
