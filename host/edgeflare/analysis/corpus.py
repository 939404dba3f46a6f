"""Campaigns and replays added to a trigger corpus, and figures of a corpus."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

from pydantic import PlainSerializer

from edgeflare._internal.records import JsonRecord
from edgeflare._internal.text import names_text
from edgeflare.answers.metrics import class_scores, top_label
from edgeflare.answers.parts import worded
from edgeflare.campaign.replay.inputs import survey_deviations
from edgeflare.campaign.replay.results import replay_inputs, replayed_inputs, stored_replay
from edgeflare.errors import StoreError, UsageError
from edgeflare.metrics import l2, linf
from edgeflare.store import OutcomeRecord, SeedRecord, Store, SurveyRecord, open_store
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.corpus.records import (
    Added,
    CorpusCampaign,
    CorpusRemoved,
    DeviceAnswer,
    Form,
    TriggerRecord,
)
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


_Moment: TypeAlias = Annotated[datetime, PlainSerializer(datetime.isoformat)]


@dataclass(frozen=True)
class CorpusAddition(JsonRecord):
    """What became of a campaign's, or a replay's, confirmed triggers in a corpus.

    `new` are entries now, `replaced` those that had to go for them; `known` were there to the bit,
    `near` are near duplicates that found no place. `noted` counts the inputs of a replay whose
    results were noted at their entries. `entries` is how many the corpus has now.

    The rest makes the `notices`: the campaign is `unfinished`; it has `another_original` than the
    corpus so far; `unplaced` triggers of a replay were not added, since the seed inputs in its
    `source` are gone; the corpus knows nothing of `unknown_fixed` triggers of that source, which are
    fixed.
    """

    folder: str
    campaign: str
    new: int
    replaced: int
    known: int
    near: int
    noted: int
    entries: int
    unfinished: bool = False
    another_original: bool = False
    unplaced: int = 0
    unknown_fixed: int = 0
    source: str = ""

    notices = worded("findings:addition_notices")
    """What is to be known of the addition, a sentence each."""
    json_instead: ClassVar = {
        "unfinished": "notices",
        **dict.fromkeys(("another_original", "unplaced", "unknown_fixed", "source"), ""),
    }


def add_to_corpus(
    corpus: Corpus | Path,
    campaign: Store | Path,
    *,
    model: str | None = None,
    per_pair: int | None = None,
    database: str | None = None,
    samples: str | None = None,
) -> CorpusAddition:
    """Add every confirmed trigger of a campaign to a corpus, which is made where there is none.

    One that still runs gives what it found so far. Of a replay the triggers that the corpus lacks
    are added, and its results are noted, as `note_replay` does. The same again changes nothing.
    `model` is what the deployed model is called in the corpus, with the device the target of a
    replay; None: by its file's name. `per_pair` is how many entries one seed input and class pair
    may have from now on; None: 3 for a new corpus, else what it has. `database` and `samples` say
    where the data of a new corpus is (see `Corpus.open`).

    Raises UsageError where the inputs' shape or the number of classes is another than the corpus',
    or the models return text, which have no classes, and StoreError.
    """
    with open_store(campaign) as store:
        check_classes(store)
        name = model or model_name(store)
        with _in_corpus(corpus, per_pair, database=database, samples=samples) as into:
            if not is_replay(store):
                return _add(into, store, found_in_campaign(store, name), name)
            with found_in_replay(store, name) as found:
                entries = into.known(trigger.sample for trigger in found.triggers)
                lacking = [trigger for trigger in found.triggers if trigger.sample not in entries]
                addition = _add(into, store, replace(found, triggers=lacking), name)
            noted = into.add_answers(answers_of(store, name))
            return replace(addition, noted=noted, unknown_fixed=_unknown_fixed(into, store))


def note_replay(corpus: Corpus | Path, replay: Store | Path, *, model: str | None = None) -> int:
    """Note the results of a replay at a corpus' entries; return how many inputs have an entry.

    So what deviated is fixed, and what comes back after that is new, in the next replay. Inputs
    that deviated, but not each time, that gave NaN or infinity, or on which a device could not
    answer leave their entries as they were. `model` is what the deployed model is called in the
    corpus; None: by its file's name. Raises StoreError where it is no replay, or a folder can't be
    used, UsageError for transcripts.
    """
    with open_store(replay) as store, _in_corpus(corpus, create=False) as into:
        stored_replay(store)
        check_classes(store)
        return into.add_answers(answers_of(store, model or model_name(store)))


def remove_from_corpus(
    corpus: Corpus | Path,
    *,
    model: str | None = None,
    pair: tuple[int, int] | None = None,
    fixed_for: float | None = None,
    dry_run: bool = False,
) -> CorpusRemoved:
    """Remove entries of a corpus, and samples without an entry; return the counts.

    Exactly one of `model`, `pair` and `fixed_for` (days) selects them; see `Corpus.remove`. Raises
    UsageError, also for a model that the corpus doesn't know, and StoreError.
    """
    with _in_corpus(corpus, create=False) as into:
        if model is not None:
            _check_model(into, model)
        return into.remove(model=model, pair=pair, fixed_for=fixed_for, dry_run=dry_run)


def _check_model(corpus: Corpus, model: str) -> None:
    """Raise UsageError for a deployed model that nothing is known of."""
    known = corpus.models()
    if model in known:
        return
    names = sorted({*known, *(answer.model for answer in corpus.answers())})
    if model not in names:
        raise UsageError(
            f"the corpus {corpus.folder} knows no deployed model {model!r}: it knows "
            f"{names_text(names) or 'none yet'}"
        )


def _add(corpus: Corpus, store: Store, found: Findings, model: str) -> CorpusAddition:
    originals = {campaign.original_sha256 for campaign in corpus.campaigns()}
    added, another = Added(0, 0, 0, 0), False
    if found.triggers:
        first = found.triggers[0]
        another = bool(originals) and first.original_sha256 not in originals
        about = CorpusCampaign(
            store.id,
            model,
            first.original_sha256,
            first.deployed_sha256,
            datetime.now(timezone.utc),
            triggers=len(found.triggers),
            near=0,
        )
        form = form_of(store, found.read(first.sample))
        added = corpus.add(found.triggers, form, found.read, campaign=about)
    return CorpusAddition(
        str(store.folder),
        store.id,
        *added,
        noted=0,
        entries=len(corpus),
        unfinished=not store.state.finished,
        another_original=another,
        unplaced=found.unplaced,
        source=stored_replay(store).source.folder if is_replay(store) else "",
    )


def _unknown_fixed(corpus: Corpus, store: Store) -> int:
    """Return the number of fixed triggers whose campaign is not in the corpus."""
    source = stored_replay(store).source
    added = {campaign.id for campaign in corpus.campaigns()}
    if source.kind != "campaign" or source.campaign in added:
        return 0
    fixed = {
        replayed.sample
        for replayed in replayed_inputs(store)
        if replayed.state == "fixed" and replayed.kind == "trigger"
    }
    return len(fixed - set(corpus.known(fixed)))


@contextmanager
def _in_corpus(
    corpus: Corpus | Path, per_pair: int | None = None, *, create: bool = True, **places: str | None
) -> Iterator[Corpus]:
    """Give the open corpus; close it afterwards only if it was opened here."""
    if isinstance(corpus, Corpus):
        if per_pair is not None:
            corpus.set_per_pair(per_pair)
        yield corpus
        return
    with Corpus.open(corpus, create=create, per_pair=per_pair, **places) as into:
        yield into


class CorpusPair(NamedTuple):
    """A pair of classes, the original's and the deployed model's, and how many entries have it."""

    original_label: int
    deployed_label: int
    entries: int


@dataclass(frozen=True)
class CorpusTarget:
    """The last answers of a deployed model on a device to the entries.

    `deviating`, `agreeing` and `unseen` (never sent to it) are all entries of the corpus together.
    """

    model: str
    device: str
    deviating: int
    agreeing: int
    unseen: int
    looked_at: _Moment


@dataclass(frozen=True)
class CorpusSummary(JsonRecord):
    """A corpus in figures.

    `shape` of the inputs is [height, width, channels], of audio [], with `rate` in Hz, which images
    have not; it and `classes` are None until something was added. `seeds` counts the seed inputs
    that entries come from, `sightings` how often entries were found, `near` the near duplicates
    that were refused. `pairs` are by the number of entries. `models` counts the entries that each
    deployed model showed, `originals` how many each original model's file (SHA-256). `found_first`
    and `found_last` are those of the entries, UTC; `size` is in bytes.
    """

    folder: str
    id: str
    created_at: _Moment
    per_pair: int
    shape: tuple[int, ...] | None
    classes: int | None
    entries: int
    seeds: int
    campaigns: int
    sightings: int
    near: int
    pairs: tuple[Annotated[CorpusPair, PlainSerializer(CorpusPair._asdict)], ...]
    models: dict[str, int]
    originals: dict[str, int]
    targets: tuple[CorpusTarget, ...]
    found_first: _Moment | None
    found_last: _Moment | None
    size: int
    rate: int | None = None


def corpus_summary(corpus: Corpus | Path) -> CorpusSummary:
    """Return figures of a corpus. Raises StoreError where its folder can't be used."""
    if not isinstance(corpus, Corpus):
        with Corpus.open(corpus) as opened_corpus:
            return corpus_summary(opened_corpus)
    entries = list(corpus.entries())
    pairs = Counter((entry.original_label, entry.deployed_label) for entry in entries)
    found = [entry.found_at for entry in entries]
    campaigns = corpus.campaigns()
    form = corpus.form
    return CorpusSummary(
        folder=str(corpus.folder),
        id=corpus.id,
        created_at=corpus.created_at,
        per_pair=corpus.per_pair,
        shape=form and form.shape,
        classes=form and form.classes,
        rate=form and form.rate,
        entries=len(entries),
        seeds=len({entry.seed_sample for entry in entries}),
        campaigns=len(campaigns),
        sightings=sum(corpus.sightings().values()),
        near=sum(campaign.near for campaign in campaigns),
        pairs=tuple(CorpusPair(*pair, count) for pair, count in pairs.most_common()),
        models=corpus.models(),
        originals=dict(Counter(entry.original_sha256 for entry in entries)),
        targets=_targets(corpus.answers(), len(entries)),
        found_first=min(found, default=None),
        found_last=max(found, default=None),
        size=corpus.size(),
    )


def _targets(answers: Iterable[DeviceAnswer], entries: int) -> tuple[CorpusTarget, ...]:
    of_target: dict[tuple[str, str], list[DeviceAnswer]] = defaultdict(list)
    for answer in answers:
        of_target[answer.model, answer.device].append(answer)
    return tuple(
        CorpusTarget(
            model,
            device,
            deviating=sum(one.deviated for one in latest),
            agreeing=sum(not one.deviated for one in latest),
            unseen=entries - len(latest),
            looked_at=max(one.looked_at for one in latest),
        )
        for (model, device), latest in sorted(of_target.items())
    )
