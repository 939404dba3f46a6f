"""Triggers and answers of a campaign, or a replay, for a trigger corpus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflare.answers.metrics import class_scores, top_label
from edgeflare.campaign.replay.inputs import survey_deviations
from edgeflare.campaign.replay.results import replay_inputs, replayed_inputs, stored_replay
from edgeflare.errors import StoreError, UsageError
from edgeflare.metrics import l2, linf
from edgeflare.store import OutcomeRecord, SeedRecord, Store, SurveyRecord
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.corpus.records import DeviceAnswer, Form, TriggerRecord
from edgeflare.store.location import is_corpus
from edgeflare.types import TRIGGERS, Sample, Status

_SeedSample = Callable[[str, str], str | None]


@dataclass(frozen=True)
class Findings:
    """The confirmed triggers of a campaign as they were found; `read` gives a digest's sample.

    `unplaced` counts triggers of a replay whose seed inputs can't be found any more.
    """

    triggers: Sequence[TriggerRecord]
    read: Callable[[str], Sample]
    unplaced: int = 0


def is_replay(store: Store) -> bool:
    """Whether a campaign is a replay."""
    return store.state.is_replay


def model_name(store: Store) -> str:
    """Return what the deployed model of a campaign is called: by its file's name."""
    return str(store.models.get("deployed", {}).get("name", ""))


def form_of(store: Store, sample: Sample) -> Form:
    """Return the form of a campaign's triggering inputs, of which `sample` is one."""
    answers = (seed.outputs for seed in store.seeds() if seed.outputs is not None)
    known = next((one.original for one in answers if one.original is not None), None)
    classes = 0 if known is None else len(class_scores(known))
    return Form.of(sample, classes, store.sample_rate)


def fits_corpus(store: Store) -> bool:
    """Whether a corpus can keep a campaign's triggers: they are decisions between classes."""
    return store.kind.has_classes


def check_classes(store: Store) -> None:
    """Raise UsageError for models without a top-1 class: a corpus has decisions between classes."""
    store.kind.check_classes(
        UsageError(
            f"{store.folder} has {store.kind.noun}, and a corpus keeps decisions between classes only; "
            f"send its triggers again with `edgeflare replay {store.folder}`"
        )
    )


def found_in_campaign(store: Store, model: str) -> Findings:
    """Return the triggers of a campaign, whose deployed model is called `model`."""
    seeds = {seed.id: seed for seed in store.seeds()}
    origin = _origin_of(store, model)
    triggers = []
    for outcome in _with_trigger(store):
        seed = seeds[outcome.seed_id]
        digests = outcome.trigger or seed.sample, seed.sample
        distances = outcome.l2 or 0.0, outcome.linf or 0
        triggers += _trigger_record(origin, outcome, digests, distances, seed.id, seed.label)
    for one in survey_deviations(store):
        triggers += _survey_record(origin, one, seeds[one.seed_id], store)
    return Findings(triggers, store.get_sample)


@contextmanager
def found_in_replay(store: Store, model: str) -> Iterator[Findings]:
    """Give the triggers of a replay, with its source open for their seed samples."""
    seeds = {seed.id: seed.sample for seed in store.seeds()}
    origin = _origin_of(store, model)
    inputs = replay_inputs(store)
    triggers: list[TriggerRecord] = []
    foreign: set[str] = set()
    unplaced = 0
    with ExitStack() as stack:
        source = _source(store, stack)
        seed_of = _seed_samples(source)

        def read(digest: str) -> Sample:
            where = source if source is not None and digest in foreign else store
            return where.get_sample(digest)

        for outcome in _with_trigger(store):
            one, sample = inputs.get(outcome.seed_id), seeds[outcome.seed_id]
            if one is None:
                continue
            seed = sample if one.kind == "seed" else seed_of(one.seed_id, sample)
            if seed is None:
                unplaced += 1
                continue
            distances = 0.0, 0
            if seed != sample:
                foreign.add(seed)
                pair = read(seed), read(sample)
                distances = l2(*pair), linf(*pair)
            triggers += _trigger_record(
                origin, outcome, (sample, seed), distances, one.seed_id, one.label
            )
        yield Findings(triggers, read, unplaced)


def answers_of(store: Store, model: str) -> Iterator[DeviceAnswer]:
    """Yield a replay's results as answers; none of inputs that were not answered steadily."""
    origin = _origin_of(store, model)
    when = {(one.replica, one.seed_id): one.finished_at for one in store.outcomes()}
    for one in replayed_inputs(store):
        if one.decided and (one.replica, one.id) in when:
            yield DeviceAnswer(
                one.sample,
                model,
                one.device,
                origin["deployed_sha256"],
                deviated=one.deviates,
                original_label=one.original_label,
                deployed_label=one.deployed_label,
                looked_at=when[one.replica, one.id],
                replay=origin["campaign"],
            )


def _with_trigger(store: Store) -> Iterator[OutcomeRecord]:
    return (outcome for outcome in store.outcomes() if outcome.status in TRIGGERS)


def _origin_of(store: Store, model: str) -> dict[str, Any]:
    """Return the fields that all triggers of a campaign have in common."""
    models = store.models
    return {
        **{
            f"{one}_sha256": str(models.get(one, {}).get("sha256", ""))
            for one in ("original", "deployed")
        },
        "model": model,
        "campaign": store.id,
    }


def _trigger_record(
    origin: Mapping[str, Any],
    outcome: OutcomeRecord,
    digests: tuple[str, str],
    distances: tuple[float, int],
    seed_id: str,
    seed_label: int | None,
) -> list[TriggerRecord]:
    """Return the record of a trigger; none where a label is not known."""
    if outcome.original_label is None or outcome.deployed_label is None:
        return []
    return [
        TriggerRecord(
            *digests,
            seed_id,
            seed_label,
            outcome.status,
            outcome.original_label,
            outcome.deployed_label,
            outcome.original_margin,
            outcome.deployed_margin,
            *distances,
            **origin,
            device=outcome.device_name or outcome.replica,
            found_at=outcome.finished_at,
        )
    ]


def _survey_record(
    origin: Mapping[str, Any], one: SurveyRecord, seed: SeedRecord, store: Store
) -> list[TriggerRecord]:
    """Return the record of a confident deviation of the survey, as one of a trigger."""
    original, deployed = top_label(one.original), top_label(one.deployed)
    if original is None or deployed is None:
        return []
    pair = store.get_sample(seed.sample), store.get_sample(one.sample)
    return [
        TriggerRecord(
            one.sample,
            seed.sample,
            seed.id,
            seed.label,
            Status.FOUND,
            original,
            deployed,
            one.original_margin,
            one.deployed_margin,
            l2(*pair),
            linf(*pair),
            **origin,
            device=one.device_name,
            found_at=store.created_at,
        )
    ]


def _source(store: Store, stack: ExitStack) -> Store | Corpus | None:
    """Open the first source of a replay's inputs, behind other replays; None if it is missing."""
    folder = Path(stored_replay(store).source.folder)
    try:
        if is_corpus(folder):
            return stack.enter_context(Corpus.open(folder))
        source = stack.enter_context(Store.open(folder))
    except StoreError:
        return None
    return _source(source, stack) if is_replay(source) else source


def _seed_samples(source: Store | Corpus | None) -> _SeedSample:
    """Return a function of a seed's id and a trigger's digest that returns the seed's digest."""
    if isinstance(source, Corpus):
        known = {entry.sample: entry.seed_sample for entry in source.entries()}
        return lambda _, sample: known.get(sample)
    seeds: dict[str, SeedRecord] = {}
    if source is not None:
        seeds = {seed.id: seed for seed in source.seeds()}
    return lambda seed_id, _: seeds[seed_id].sample if seed_id in seeds else None
