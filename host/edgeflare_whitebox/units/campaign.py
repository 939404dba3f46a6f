"""Which units of a campaign's original go with deviation, and with other hypotheses on its inputs."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
from pydantic import Field, FiniteFloat, InstanceOf, PlainSerializer

from edgeflare._internal.records import JsonRecord
from edgeflare._internal.text import counted
from edgeflare.analysis import RunContext, WithUnitScores
from edgeflare.campaign import SurveyInputs
from edgeflare.campaign.settings.flags import Flag
from edgeflare.errors import UsageError
from edgeflare.store import Store, SurveyRecord
from edgeflare.types import AGREED, TRIGGERS, Decision, Sample
from edgeflare_whitebox.priority import InspectedOriginal
from edgeflare_whitebox.stored import (
    InspectionSettings,
    Tell,
    inspect_campaign,
    layers_flag,
    silent,
    stored_original,
)
from edgeflare_whitebox.units.hypotheses import (
    CLASS,
    DEVIATES,
    FAMILY,
    Hypothesis,
    InputRecord,
    built_in_hypothesis,
    is_of_audio,
)
from edgeflare_whitebox.units.inspection import UnitScore, UnitScores, inspect_units
from edgeflare_whitebox.units.measures import MEASURES, MeasureName
from edgeflare_whitebox.words.inspections import NOT_REMADE, unit_notices, unscored
from edgeflare_whitebox.words.names import SAMPLE_HYPOTHESES

_FACT = "units"
_UNREAD = np.zeros(0, np.uint8)
"""The sample of an input that wasn't asked for yet."""
_BEST = 5
"""Units that are kept with the result for each hypothesis and measure."""
UnitInputs: TypeAlias = Literal["seeds", "survey", "triggers"]
"""Sets of a campaign's inputs: the seeds, the even survey's inputs, the triggering inputs."""
UNIT_INPUTS: tuple[UnitInputs, ...] = get_args(UnitInputs)
UNSELECTED: tuple[UnitInputs, ...] = ("seeds", "survey")
"""The sets that were not searched for: whether the device deviates on them had no part in the choice."""
ALL_CLASSES, ALL_FAMILIES = "classes", "families"
"""Names of the hypotheses of all classes, and of all families of the survey."""
Remake: TypeAlias = Callable[[Store], Callable[[SurveyRecord], Sample]]
"""Returns what makes inputs of a campaign's survey again."""


@dataclass(frozen=True)
class LayerScore:
    """How much a layer goes with a hypothesis.

    `f1` is the score of all its units together, `unit` that of the unit whose correlation is largest
    in absolute value; None where there is none.
    """

    layer: str
    f1: UnitScore | None
    unit: UnitScore | None


@dataclass(frozen=True)
class HypothesisScores:
    """The units and layers that go with a hypothesis most.

    The hypothesis says something of `records` inputs read; it is 1 on `ones` of them, None where
    its values aren't only 0 and 1. `problem` says why there are no scores, "" where there are.
    `best` has up to 5 units by each measure of units, the highest absolute value first. `guess` is
    the F1 of always saying the rarer value, None where F1 isn't measured.
    """

    name: str
    about: str
    records: int
    ones: int | None
    problem: str
    best: tuple[UnitScore, ...]
    layers: tuple[LayerScore, ...]
    guess: FiniteFloat | None


@dataclass(frozen=True)
class UnitsFound(JsonRecord):
    """Which units of a campaign's original go with hypotheses on its inputs.

    `model` is the name of the original's file. `units` were looked at in `layers`, by the names of
    their tensors; `dead_units` of them are constant over the inputs read and have no score.
    `inputs` is the number of different inputs by set, and that of `deviating` ones among all of
    them, on any device. `records` of `total` inputs were read, in random order drawn with
    `random_seed`: all of them. In results of earlier versions `records` may be less, as every score
    was within `error` then, which is 0 now. `finished`: the campaign is.
    """

    model: str
    layers: tuple[str, ...]
    units: int
    dead_units: int
    inputs: dict[UnitInputs, int]
    deviating: int
    records: int
    total: int
    error: FiniteFloat
    random_seed: int
    finished: bool
    measures: tuple[MeasureName, ...]
    hypotheses: tuple[HypothesisScores, ...]
    notices: tuple[str, ...] = ()


def _survey_inputs(store: Store) -> Callable[[SurveyRecord], Sample]:
    return SurveyInputs(store).sample


class UnitsSettings(InspectionSettings):
    """What `units_of_campaign` is told."""

    hypotheses: Annotated[
        tuple[Annotated[str | InstanceOf[Hypothesis], PlainSerializer(str)], ...],
        Flag("--hypothesis", metavar="NAME"),
    ] = Field(
        (),
        description="What units may go with, such as deviates, class:3, classes, family:dim, families, "
        "brightness; may be repeated. By default deviates, and those on a sample alone.",
    )
    measures: Annotated[tuple[str, ...], Flag("--measure", metavar="NAME")] = Field(
        (), description="pearson, mutual-information or f1; may be repeated. By default all."
    )
    layers: Annotated[tuple[str, ...], layers_flag()] = ()
    inputs: Annotated[tuple[str, ...], Flag("--inputs", metavar="SET")] = Field(
        UNSELECTED,
        description="seeds, survey or triggers, may be repeated; or all. By default seeds and survey, which "
        "were not searched for.",
    )
    random_seed: Annotated[int, Flag("--random-seed", metavar="N")] = Field(
        0, ge=0, description="Draws the order in which inputs are read."
    )
    remake: Annotated[Any, Field(exclude=True)] = _survey_inputs


def stored_units(store: Store) -> UnitsFound | None:
    """Return what `units_of_campaign` stored last, None before. Raises StoreError."""
    return store.result(_FACT, UnitsFound)


def units_of_campaign(
    folder: Path, *, tell: Tell = silent, remake: Remake | None = None, **settings: Any
) -> UnitsFound:
    """Find the units of a campaign's original that go with deviation on the device; store and return it.

    The campaign may be unfinished. `settings` are those of ``edgeflare inspect units``: `original`, where the
    file has moved; `hypotheses`, the user's own, and names: see `built_in_hypothesis`; ``classes``
    and ``families`` name those of all classes and families (by default ``deviates``, of several
    devices that search for themselves each one's, and those on a sample alone); `measures` as of
    `inspect_units`; `layers`; `inputs`; `random_seed`.

    `inputs` are names in `UNIT_INPUTS`. By default they are those that were not searched for: the
    seeds, and the survey's inputs before anything it saw was pursued. Triggering inputs were found
    because the device deviates on them, by changing seeds: units may go with ``deviates`` because
    of the change alone. Whether the device deviates is taken from the stored answers; an
    input on which it didn't answer, or not always in the same way, counts for other hypotheses.
    Of the survey the campaign stores the samples of findings alone; `remake` makes the others again
    (``lambda store: SurveyInputs(store).sample`` of `edgeflare.campaign`). Without it all of the survey
    is left out, and a notice says so.

    All scores go to the table unit_scores of the campaign's database in place of those before, the
    result to the report. Where the campaign is running neither is stored; a notice says so.

    Raises UsageError as `inspect_units`, and where the campaign has no seeds yet, its original isn't
    the file that it was run with, or has no tensors that can be read; ModelError; StoreError, also
    where an input of the survey can't be made again.
    """
    found: UnitsFound = inspect_campaign("units", folder, tell, remake=remake, **settings)
    return found


def find_units(
    store: Store, settings: UnitsSettings, context: RunContext
) -> WithUnitScores[UnitsFound]:
    """Return what `units_of_campaign` does, and all scores, of an open campaign; nothing is stored."""
    inputs = UNIT_INPUTS if settings.inputs == ("all",) else settings.inputs
    if unknown := sorted(set(inputs) - set(UNIT_INPUTS)):
        raise UsageError(f"there are no inputs {unknown[0]!r}; take {', '.join(UNIT_INPUTS)}")
    if not inputs:
        raise UsageError(f"units are inspected with some inputs: take {', '.join(UNIT_INPUTS)}")
    model = stored_original(store, settings.original)
    data = _Inputs(store, [one for one in UNIT_INPUTS if one in inputs], settings.remake)
    scores = inspect_units(
        InspectedOriginal(model.path, model.graph, model.spec, model.label),
        settings.layers or None,
        _hypotheses(settings.hypotheses, store, data),
        settings.measures or tuple(MEASURES),
        data,
        random_seed=settings.random_seed,
        tell=context.tell,
    )
    found = UnitsFound(
        model=model.path.name,
        layers=tuple(scores.units),
        units=len(scores.dead),
        dead_units=int(scores.dead.sum()),
        inputs=data.counts,
        deviating=data.deviating,
        records=scores.records,
        total=scores.records,
        error=0.0,
        random_seed=settings.random_seed,
        finished=store.state.finished,
        measures=tuple(scores.scores),
        hypotheses=tuple(_of_hypotheses(scores)),
        notices=(*data.notices, *unit_notices(scores)),
    )
    return WithUnitScores(found, lambda: map(vars, scores.rows()))


class _Inputs(Sequence[InputRecord]):
    """A campaign's inputs, each once; samples are read, or made again, when an input is asked for."""

    def __init__(self, store: Store, sets: Sequence[UnitInputs], remake: Remake | None) -> None:
        self._store = store
        self._make = None if remake is None else remake(store)
        self._records: dict[str, InputRecord] = {}
        self._unstored: dict[str, SurveyRecord] = {}
        self.counts: dict[UnitInputs, int] = {}
        self.notices: list[str] = []
        self.replicas = store.state.replicas
        self._labels = {seed.id: seed.label for seed in store.seeds()}
        readers = {"seeds": self._seeds, "survey": self._survey, "triggers": self._triggers}
        for name in sets:
            self.counts[name] = len(set(readers[name]()))
        self._digests = list(self._records)
        if not self._digests:
            raise UsageError(
                f"{store.folder} has none of these inputs ({', '.join(sets)}): take others of "
                f"{', '.join(UNIT_INPUTS)}"
            )
        records = self._records.values()
        self.deviating = sum(any(record.deviates.values()) for record in records)
        self.labels = sorted({label for label in self._labels.values() if label is not None})
        self.families = sorted({name for record in records for name in record.families or ()})

    def __len__(self) -> int:
        return len(self._digests)

    def __getitem__(self, place: Any) -> Any:
        digest = self._digests[place]
        survey = self._unstored.get(digest)
        if survey is None or self._make is None:
            sample = self._store.get_sample(digest)
        else:
            sample = self._make(survey)
        return self._records[digest]._replace(sample=sample)

    def _add(
        self, digest: str, replica: str, deviates: bool | None, seed_id: str, family: str = ""
    ) -> str:
        """Add what is known of an input to what was; one that deviated once deviates."""
        new = InputRecord(_UNREAD, digest, self._labels.get(seed_id), None, {}, (), seed_id)
        record = self._records.setdefault(digest, new)
        if family and family not in (record.families or ()):
            record = record._replace(families=(*(record.families or ()), family))
        if deviates is not None:
            either = deviates or record.deviates.get(replica, False)
            record = record._replace(deviates={**record.deviates, replica: either})
        self._records[digest] = record
        return digest

    def _seeds(self) -> Iterator[str]:
        for replica in self.replicas:
            for seed in self._store.seeds(replica):
                deviates = None if seed.outputs is None else _deviates(seed.outputs.decision)
                yield self._add(seed.sample, replica, deviates, seed.id)

    def _survey(self) -> Iterator[str]:
        left_out = 0
        for one in self._store.survey(phase="survey"):
            if self._make is None:
                left_out += 1
                continue
            deviates = True if one.confident_deviation else _deviates(one.decision)
            if deviates and not one.confident_deviation:
                deviates = None  # not in every repetition
            if one.sample not in self._records and not self._store.has_sample(one.sample):
                self._unstored[one.sample] = one
            yield self._add(one.sample, one.replica, deviates, one.seed_id, one.family)
        if left_out:
            self.notices.append(NOT_REMADE.format(counted(left_out, "input")))

    def _triggers(self) -> Iterator[str]:
        seed_ids = {}
        for outcome in self._store.outcomes():
            if outcome.status in TRIGGERS and outcome.trigger is not None:
                seed_ids[outcome.trigger] = outcome.seed_id
                yield self._add(outcome.trigger, outcome.replica, True, outcome.seed_id)
        for again in self._store.replays():
            if again.trigger in seed_ids:
                deviates = _deviates(again.decision)
                self._add(again.trigger, again.on_device, deviates, seed_ids[again.trigger])


def _deviates(decision: Decision) -> bool | None:
    if decision in AGREED:
        return False
    return True if decision in (Decision.DEVIATION, Decision.NONFINITE) else None


def _hypotheses(given: Sequence[str | Hypothesis], store: Store, data: _Inputs) -> list[Hypothesis]:
    """Return the hypotheses by their names, the defaults where none is given."""
    devices = [replica for replica in data.replicas if replica]
    rate = store.sample_rate
    if not given:
        of_devices = [f"{DEVIATES}:{device}" for device in devices] if len(devices) > 1 else []
        of_samples = [name for name in SAMPLE_HYPOTHESES if is_of_audio(name) == (rate is not None)]
        given = [DEVIATES, *of_devices, *of_samples]
    names: dict[str | Hypothesis, None] = {}
    for one in given:
        if one == ALL_CLASSES:
            if not data.labels:
                raise UsageError(
                    f"the seeds of {store.folder} have no labels: name single classes, such as "
                    f"{CLASS}:0, which the original's decision then tells"
                )
            names |= dict.fromkeys(f"{CLASS}:{label}" for label in data.labels)
        elif one == ALL_FAMILIES:
            if not data.families:
                raise UsageError(
                    f"no family made any of these inputs of {store.folder}: its survey is not there"
                )
            names |= dict.fromkeys(f"{FAMILY}:{family}" for family in data.families)
        else:
            names[one] = None
    classes = _class_count(store)
    for name in names:
        kind, _, number = str(name).partition(":") if isinstance(name, str) else ("", "", "")
        if kind == CLASS and number.isdecimal() and classes and int(number[:9]) >= classes:
            raise UsageError(
                f"there is no {name!r}: the original has {classes:,} classes, 0 to {classes - 1}"
            )
    built_in = partial(built_in_hypothesis, rate=rate, devices=devices, families=data.families)
    return [built_in(one) if isinstance(one, str) else one for one in names]


def _class_count(store: Store) -> int | None:
    """Return the number of the original's classes, None where no seed was answered with scores."""
    answers = (seed.outputs.original for seed in store.seeds() if seed.outputs is not None)
    first = next((answer for answer in answers if answer is not None), None)
    return None if first is None else store.kind.class_count(first) or None


def _of_hypotheses(scores: UnitScores) -> Iterator[HypothesisScores]:
    """Yield what is kept of each hypothesis."""
    for h, one in enumerate(scores.hypotheses):
        rows = {name: list(scores.rows(one.name, name)) for name in scores.scores}
        joint = {row.layer: row for row in rows.pop("f1", [])}
        first: dict[str, UnitScore] = {}
        for row in rows.get("pearson", []):
            first.setdefault(row.layer, row)
        yield HypothesisScores(
            name=one.name,
            about=one.about,
            records=scores.counts[h],
            ones=scores.ones[h],
            problem="" if scores.scorable[h] else unscored(scores, h),
            best=tuple(row for some in rows.values() for row in some[:_BEST]),
            layers=tuple(
                LayerScore(layer, joint.get(layer), first.get(layer)) for layer in scores.units
            ),
            guess=None if math.isnan(scores.guesses[h]) else scores.guesses[h],
        )
