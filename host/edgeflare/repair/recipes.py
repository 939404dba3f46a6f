"""Other quantisations of a campaign's original, each judged by a new search on the same budget.

Triggering inputs that the deployed model was found to deviate on say little of another one: whatever
moves the decision boundary "repairs" most of them. So every candidate, the present deployed model
among them, is searched anew from the same seed inputs, and they are ranked as `edgeflare compare`
does.

Of detectors the share of objects that differ on the seed inputs is compared, too, and two more
recipes leave the end of the head in float, so that boxes and scores have no scale in common.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, PlainSerializer

from edgeflare._internal.files import replacing, write_whole
from edgeflare._internal.records import JsonRecord, in_json
from edgeflare._internal.text import first_of
from edgeflare.analysis import Accuracy, Duel, Estimate, RankedModel, rank_campaigns, summarize
from edgeflare.answers.detections.figures import DifferenceCounts
from edgeflare.campaign import run_candidates
from edgeflare.campaign.batch import check_free
from edgeflare.campaign.events import BatchProgress, BatchWatch, Event, Notice, Stage, silent
from edgeflare.campaign.resolution import STRATEGY
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.flags import Flag
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.campaign.settings.survey import SurveyConfig
from edgeflare.devices import ConnectOptions, runtime_for
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import spec_from_json
from edgeflare.models.quantized import (
    Recipe,
    calibration_inputs,
    check_quantizable,
    make_quantized,
    script_of,
)
from edgeflare.repair.in_float import HEADS, largest_layers
from edgeflare.repair.search_again import REPAIR_FOLDER, campaign_config
from edgeflare.repair.tflite_recipes import (
    TFLITE_RECIPES,
    TFLiteRecipe,
    find_quantizer,
    make_tflite,
    tflite_script,
)
from edgeflare.store import Store
from edgeflare.store.database import translate_errors
from edgeflare.words import repair

if TYPE_CHECKING:
    from typing_extensions import Unpack

RECIPES_FOLDER = "recipes"
"""Name of the folder, among a campaign's repairs, with the candidates and their searches."""
PRESENT = "as deployed"
"""The name of the present deployed model among the candidates."""
KEEP_FLOAT = 2
SIZE_TOLERANCE = 0.05
"""A candidate may be larger than the present model by this share and count as no larger."""
LATENCY_TOLERANCE = 0.5
"""It may take longer by this share and count as no slower: equal models' medians differ by a third on a
busy machine (docs/research/repair.md)."""
LATENCY_SLACK_S = 1e-3
"""Or by so many seconds: below that a query's way to the device costs more than the model."""
LEVEL = 0.95
_CALIBRATION = "calibration.npz"
MARKER = ".recipes"
"""Name of an empty file in a folder with candidates, so that no other folder is written to."""

ONNX_RECIPES = (
    Recipe("int8-per-channel", per_channel=True),
    Recipe("int8-per-tensor", per_channel=False),
    Recipe("int8-per-channel-percentile", per_channel=True, calibration="percentile"),
    Recipe("int8-per-channel-entropy", per_channel=True, calibration="entropy"),
    Recipe("int8-dynamic", per_channel=False, calibration="dynamic"),
    Recipe("int8-weights", per_channel=True, calibration="none"),
    Recipe("int16-activations", per_channel=True, wide=True),
)
_FLOAT_NAME = "int8-float-"

Point: TypeAlias = tuple[float, float]


class RecipesSettings(BaseModel):
    """What ``repair recipes`` is told."""

    recipe: Annotated[tuple[str, ...], Flag("--recipe", metavar="NAME")] = Field(
        (), description="Try this recipe alone; may be repeated."
    )
    keep_float: Annotated[int, Flag("--keep-float", metavar="N")] = Field(
        KEEP_FLOAT,
        ge=0,
        description="Try the 1 to N operators with the largest contributions in float (needs edgeflare "
        "explain).",
    )
    survey: Annotated[bool, Flag("--survey")] = Field(
        False, description="Survey each candidate, too, far from the seeds."
    )
    quantizer_python: Annotated[Path | None, Flag("--quantizer-python", metavar="PATH")] = Field(
        None,
        description="For TFLite originals: a Python that has ai-edge-quantizer; by default one is "
        "installed in the user's cache folder.",
    )
    out: Annotated[Path | None, Flag("--out", metavar="FOLDER")] = Field(
        None,
        description="A folder for the candidates and their searches; by default CAMPAIGN/repair/recipes.",
    )


@dataclass(frozen=True)
class ObjectDifferences:
    """The objects that differ on the seed inputs as they are, by `kinds`: lost, ghost, class, shift.

    `original` is the number of the original's detections. As of `edgeflare.analysis`, differences
    with a margin of 0, or below the campaign's floor, don't count.
    """

    original: int
    kinds: dict[str, int]

    @classmethod
    def of(cls, counts: DifferenceCounts) -> "ObjectDifferences":
        """Return the same of all classes together."""
        return cls(counts.original, counts.kinds)

    @property
    def count(self) -> int:
        """The number of objects that differ, of any kind."""
        return sum(self.kinds.values())

    @property
    def share(self) -> float:
        """Differing objects over the original's detections; above 1 where there are many ghosts."""
        return self.count / max(1, self.original)


@dataclass(frozen=True)
class RecipeFigures:
    """A candidate, made by the recipe `name`, and what was measured of it.

    `size` is in bytes. `disagreement` is the mean over all seeds of the distance, by
    `edgeflare.metrics.disagreement`, of both models' answers to the most severe trigger that was
    found: the total variation distance of probabilities, the largest difference of an object's
    scores of detectors. `natural` of the seeds deviate as they are. Of the `searched` others the new
    search `found` a trigger, with so many `queries` to the first one on average. `latency_s`: the device's own time for a query, the slowest device's
    median, or the mean where it wasn't watched. `confident` is the survey's rate of confident
    deviations. What isn't known is None. `is_front`: no other candidate is both smaller and deviates
    less. `in_float` names the layers that are not quantised. `objects`: of detectors alone.
    """

    name: str
    file: str
    size: int
    disagreement: Estimate
    accuracy: Accuracy | None
    natural: int
    latency_s: float | None
    confident: float | None
    is_front: bool = False
    in_float: Annotated[tuple[str, ...], PlainSerializer(repair.in_float_words)] = ()
    searched: int = 0
    found: int = 0
    queries: float | None = None
    objects: ObjectDifferences | None = None

    @property
    def figures(self) -> tuple[float, ...]:
        """What candidates are judged by: disagreement; of detectors the share of objects, too."""
        shares = () if self.objects is None else (self.objects.share,)
        return (self.disagreement.value, *shares)


@dataclass(frozen=True)
class RecipesFound(JsonRecord):
    """Candidates by the new search, least disagreement first; the present model is one of them.

    `winner` is the recipe that deviates least among those that are no larger and no slower than the
    present model, see `is_affordable`, and deviate less, as of `winner_of`; None where none does. `duel` compares the
    winner with the present model; its level is higher than `level` by Bonferroni for the number of
    recipes. `script` makes the winner. `failed` says why other recipes gave no candidate.
    """

    folder: str
    seeds: int
    level: float
    candidates: tuple[RecipeFigures, ...]
    winner: str | None
    duel: Duel | None
    script: str | None
    failed: dict[str, str]
    notices: tuple[str, ...]

    def candidate(self, name: str) -> RecipeFigures:
        """Return the candidate of this name."""
        return next(one for one in self.candidates if one.name == name)

    @property
    def present(self) -> RecipeFigures:
        """The present deployed model."""
        return self.candidate(PRESENT)

    @property
    def least(self) -> RecipeFigures:
        """The candidate of any size and latency that deviates least."""
        return min(
            self.candidates, key=lambda candidate: relative_deviation(candidate, self.present)
        )

    @in_json
    def is_clear(self) -> bool:
        """Whether the seeds tell the winner apart from the present model."""
        return self.duel is not None and self.duel.verdict == self.winner

    @in_json
    def p(self) -> float | None:
        """p of the winner's duel, adjusted for the number of recipes by Bonferroni."""
        return None if self.duel is None else min(1.0, self.duel.p * (len(self.candidates) - 1))


def winner_of(candidates: Iterable[RecipeFigures], present: RecipeFigures) -> RecipeFigures | None:
    """Return the candidate that deviates least, less than `present`, and is no larger and no slower.

    None of the `figures` may be worse than the present model's, and one must be better; the least is
    that with the least `relative_deviation`.
    """
    before = present.figures
    better = (
        candidate
        for candidate in candidates
        if is_affordable(candidate, present)
        and candidate.figures != before
        and all(after <= most for after, most in zip(candidate.figures, before, strict=True))
    )
    return min(better, key=lambda one: (relative_deviation(one, present), one.size), default=None)


def is_affordable(one: RecipeFigures, present: RecipeFigures) -> bool:
    """Whether a candidate is no larger and no slower than the present model, within the tolerances.

    A latency that isn't known doesn't count.
    """
    if one.size > present.size * (1 + SIZE_TOLERANCE):
        return False
    if one.latency_s is None or present.latency_s is None:
        return True
    return one.latency_s <= max(
        present.latency_s * (1 + LATENCY_TOLERANCE), present.latency_s + LATENCY_SLACK_S
    )


def relative_deviation(one: RecipeFigures, present: RecipeFigures) -> float:
    """Return the sum of a candidate's `figures`, each as a multiple of the present model's.

    A figure that is 0 of the present model counts as it is.
    """
    return sum(
        after / (before or 1.0) for after, before in zip(one.figures, present.figures, strict=True)
    )


def front_of(points: Mapping[str, Point]) -> set[str]:
    """Return the names of the points that no other one is below in one number and not above in the other."""
    front, lowest = set(), None
    for name, (_, value) in sorted(points.items(), key=lambda one: one[1]):
        if lowest is None or value < lowest:
            front.add(name)
            lowest = value
    return front


def recipes_campaign(
    folder: Path,
    *,
    only: Sequence[str] = (),
    out: Path | None = None,
    keep_float: int = KEEP_FLOAT,
    survey: bool = False,
    quantizer_python: Path | None = None,
    progress: BatchWatch = silent,
    **reach: "Unpack[ConnectOptions]",
) -> RecipesFound:
    """Quantise a campaign's original by several recipes, and search each anew; write the best's script.

    Files go to `out`, by default ``repair/recipes`` in the campaign's folder; what is there is kept,
    so that the same call goes on after an end. `only`: these recipes alone. `keep_float`: so many
    operators with the largest contributions, by the campaign's explanation, are tried in float; of
    detectors the end of the head, too.
    `survey`: each candidate is surveyed, too. `quantizer_python` has ai-edge-quantizer, for TFLite
    originals.

    Raises UsageError for an original of another format, for an `out` that has other files, for a
    recipe that there isn't, where no recipe gives a candidate, and as `campaign_config` and
    `find_quantizer`; what concerns all candidates as `run_candidates`; StoreError.
    """
    folder = Path(folder).absolute()
    config = campaign_config(folder)
    target = folder / REPAIR_FOLDER / RECIPES_FOLDER if out is None else Path(out).absolute()
    check_free(target, MARKER, "a folder of recipes")
    with translate_errors(target, resumable=False):
        target.mkdir(parents=True, exist_ok=True)
        write_whole(target / MARKER, b"")
    with Store.open(folder) as store:
        if survey:
            settings = SurveyConfig.model_validate(store.campaign.get("survey") or {})
            settings = settings.model_copy(update={"enabled": True, "references": ()})
            config = config.model_copy(update={"survey": settings})
        maker = _maker(config, store, target / "models", quantizer_python)
        layers, notice = largest_layers(config, store, keep_float)
        heads, why_none = store.kind.float_heads(config, store)
    for name, tensors in (*_in_float(layers), *heads.items()):
        maker.keep_float(name, tensors)
    if unknown := [one for one in only if one not in maker.recipes]:
        more = f"; {notice}" if notice and any(_FLOAT_NAME in one for one in unknown) else ""
        raise UsageError(
            f"there is no recipe {first_of(unknown)}; take {', '.join(maker.recipes)}{more}"
        )
    names = [one for one in maker.recipes if not only or one in only]

    def tell(number: int, event: Event) -> None:
        progress(BatchProgress(names[number - 1], target, number, len(names), event))

    tell(1, Stage("recipes", "finding a quantiser"))
    maker.prepare()
    files: dict[str, Path] = {}
    failed: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        tell(number, Stage("recipes", f"making {name}"))
        try:
            with translate_errors(folder):
                files[name] = maker.make(name)
        except ModelError as error:
            failed[name] = f"it can't be made: {error}"
            tell(number, Notice(repair.NOT_MADE.format(name, error)))
    notices = [*filter(None, (notice, why_none)), repair.CALIBRATED]
    models = {PRESENT: config.deployed}
    models |= {name: _deployed(config, file) for name, file in files.items()}
    if dropped := _dropped(config, models.values()):
        notices.append(dropped)
    ran = run_candidates(
        _search(config),
        list(models.values()),
        measure="disagreement",
        out=target / ("searches-surveyed" if survey else "searches"),
        progress=progress,
        **reach,
    )
    runs = dict(zip(models, ran.runs, strict=True))
    failed |= {name: run.failed for name, run in runs.items() if run.failed is not None}
    finished = {name: run.folder for name, run in runs.items() if run.failed is None}
    if PRESENT not in finished or len(finished) < 2:
        why = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        raise UsageError(f"there is nothing to compare with the model {PRESENT}: {why}")
    ranking = rank_campaigns(list(finished.values()), names=list(finished), level=LEVEL)
    figures = [_figures(candidate, layers) for candidate in ranking.candidates]
    front = front_of({figure.name: (figure.size, figure.disagreement.value) for figure in figures})
    figures = [replace(figure, is_front=figure.name in front) for figure in figures]
    present = next(figure for figure in figures if figure.name == PRESENT)
    winner = winner_of(figures, present)
    duel = script = None
    if winner is not None:
        pair = [winner.name, PRESENT]
        (duel,) = rank_campaigns(
            [finished[name] for name in pair],
            names=pair,
            level=1 - (1 - LEVEL) / (len(figures) - 1),
        ).duels
        script = target / f"{winner.name}.py"
        with translate_errors(folder):
            write_whole(script, maker.script(winner.name).encode())
            if not (target / _CALIBRATION).exists():  # the user may have put other inputs there
                with replacing(target / _CALIBRATION) as file:
                    np.savez(file, *maker.inputs)
    return RecipesFound(
        str(target),
        ranking.seeds,
        LEVEL,
        tuple(figures),
        winner.name if winner else None,
        duel,
        str(script) if script else None,
        failed,
        (*notices, *(note for note in ranking.notes if note not in ranking.unclear)),
    )


def _figures(ranked: RankedModel, layers: Sequence[tuple[str, tuple[str, ...]]]) -> RecipeFigures:
    summary = summarize(Path(ranked.folder))
    answers = summary.answers
    counts = None if answers is None else summary.kind.seed_differences(answers)
    known = [one.latency_median_s for one in summary.telemetry if one.latency_median_s is not None]
    rate = summary.survey.overall if summary.survey else None
    count = int(ranked.name.removeprefix(_FLOAT_NAME)) if _FLOAT_NAME in ranked.name else 0
    head = HEADS.get(ranked.name)
    figures = ranked.figures
    return RecipeFigures(
        name=ranked.name,
        file=ranked.file,
        size=ranked.size,
        disagreement=ranked.value,
        accuracy=figures.accuracy,
        natural=figures.seed_deviates,
        latency_s=max(known, default=figures.seconds_per_inference),
        confident=rate.rate if rate else None,
        in_float=(head,) if head else tuple(name for name, _ in layers[:count]),
        searched=figures.searched,
        found=figures.found,
        queries=figures.queries.value if figures.queries else None,
        objects=None if counts is None else ObjectDifferences.of(counts),
    )


def _search(config: CampaignConfig) -> CampaignConfig:
    """Return the configuration with `boundary`, to which `run_candidates` adds a device budget."""
    search = config.search
    if search.strategy != STRATEGY:
        search = search.model_copy(update={"strategy": STRATEGY, "options": {}})
    return config.model_copy(update={"search": search, "out": None})


def _deployed(config: CampaignConfig, file: Path) -> ModelConfig:
    """Return how a candidate is run: its interface is the original's."""
    present = config.deployed
    is_like = file.suffix.lower() == present.path.suffix.lower()
    return config.original.model_copy(
        update={
            "path": file.absolute(),
            "runtime": present.runtime if is_like else runtime_for(file),
            "options": present.options if is_like else {},
            "repair": None,
        }
    )


def _dropped(config: CampaignConfig, models: Iterable[ModelConfig]) -> str:
    """Return what candidates of another format are run without; "" where there are none."""
    runtime = next(
        (model.runtime for model in models if model.path.suffix != config.deployed.path.suffix), ""
    )
    if not runtime:
        return ""
    return repair.run_otherwise(runtime, PRESENT, config.deployed.options)


# Makers


def _maker(config: CampaignConfig, store: Store, folder: Path, python: Path | None) -> "_OnnxMaker":
    """Raises UsageError where the original's format has no quantiser."""
    original = config.original.path
    suffix = original.suffix.lower()
    if suffix not in (".onnx", ".tflite"):
        raise UsageError(
            f"recipes are made from ONNX and TFLite models, and {original.name} is neither: export it "
            "to ONNX and run a campaign with that as the original"
        )
    samples = store.seed_samples()
    if len(samples) < 2:
        raise UsageError("recipes are calibrated on seed inputs, and there are fewer than two")
    inputs = calibration_inputs(samples, spec_from_json(store.models["original"]["input"]))
    if suffix == ".onnx":
        return _OnnxMaker(original, folder, inputs)
    return _TFLiteMaker(original, folder, inputs, python)


class _OnnxMaker:
    """Makes ONNX models by `recipes`, calibrated on `inputs`: tensors of the original's input."""

    def __init__(self, original: Path, folder: Path, inputs: Sequence[NDArray[Any]]) -> None:
        self.inputs, self._original, self._folder = inputs, original, folder
        self.recipes: dict[str, Any] = {recipe.name: recipe for recipe in ONNX_RECIPES}

    def keep_float(self, name: str, tensors: tuple[str, ...]) -> None:
        """Add a recipe that keeps the operators in float which make one of the tensors."""
        self.recipes[name] = ONNX_RECIPES[0]._replace(name=name, in_float=tensors)

    def prepare(self) -> None:
        """Find or install what quantises. Raises UsageError where that can't be done."""
        check_quantizable(self._original, "recipes' models")

    def make(self, name: str) -> Path:
        """Return the file that a recipe makes. Raises ModelError, OSError."""
        problems: list[str] = []
        made = make_quantized(
            self._original,
            [self.recipes[name]],
            self.inputs,
            self._folder,
            lambda _, problem: problems.append(problem),
        )
        if name not in made:
            raise ModelError(problems[0])
        return made[name]

    def script(self, name: str) -> str:
        """Return a recipe as a script."""
        return script_of(self.recipes[name], self._original, _CALIBRATION, f"{name}.onnx")


class _TFLiteMaker(_OnnxMaker):
    """Makes TFLite models, by a quantiser in an environment of its own."""

    def __init__(
        self, original: Path, folder: Path, inputs: Sequence[NDArray[Any]], python: Path | None
    ) -> None:
        super().__init__(original, folder, inputs)
        self._python, self._quantizer = python, (Path(), "")
        self.recipes = {recipe.name: recipe for recipe in TFLITE_RECIPES}

    def keep_float(self, name: str, tensors: tuple[str, ...]) -> None:
        plain = tuple(tensor.partition("#")[0] for tensor in tensors)  # the host's own numbers
        self.recipes[name] = TFLiteRecipe(name, TFLITE_RECIPES[0].function, plain)

    def prepare(self) -> None:
        self._quantizer = find_quantizer(self._python)

    def make(self, name: str) -> Path:
        recipe = self.recipes[name]
        return make_tflite(self._original, recipe, self.inputs, self._folder, self._quantizer)

    def script(self, name: str) -> str:
        made, (_, version) = f"{name}.tflite", self._quantizer
        return tflite_script(self.recipes[name], self._original, _CALIBRATION, made, version)


def _in_float(
    layers: Sequence[tuple[str, tuple[str, ...]]],
) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield a recipe's name and its tensors, for the first of the layers, the first two, and so on."""
    tensors: tuple[str, ...] = ()
    for number, (_, made) in enumerate(layers, 1):
        tensors += tuple(name for name in made if name not in tensors)
        yield f"{_FLOAT_NAME}{number}", tensors
