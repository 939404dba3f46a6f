"""The inputs of a replay, read from a campaign, from a replay of it, or from a corpus."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from edgeflare.answers.columns import is_answer
from edgeflare.answers.metrics import text_of, top_label
from edgeflare.campaign.replay.results import ReplayedInput, replay_inputs, replayed_inputs
from edgeflare.campaign.status import replica_names
from edgeflare.errors import StoreError
from edgeflare.metrics import l2
from edgeflare.store import OutcomeRecord, Store, SurveyRecord
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.location import DATABASE_NAME, is_campaign, is_corpus
from edgeflare.store.records import ReplayInput, ReplayResult, trigger_id
from edgeflare.store.state import ReplayOrigin
from edgeflare.types import AGREED, TRIGGERS, Decision, Sample

SourceKind: TypeAlias = Literal["campaign", "replay", "corpus"]


@dataclass(frozen=True)
class ReplaySource:
    """Where inputs come from: a folder, open; `store` is None for a corpus, which has no models.

    `target` names, ``model/device``, whose last answer to a corpus' entries counts; None: anyone's.
    """

    folder: Path
    kind: SourceKind
    store: Store | None = None
    corpus: Corpus | None = None
    target: str | None = None

    @property
    def rate(self) -> int | None:
        """The rate of all samples in Hz; None of images."""
        if self.corpus is not None:
            return self.corpus.rate
        return None if self.store is None else self.store.sample_rate

    def inputs(self) -> Iterator[ReplayInput]:
        """Yield every input: triggers, findings of the survey, then seeds; for each replica."""
        if self.corpus is not None:
            yield from self.corpus.inputs(self.target)
        elif self.store is not None and self.kind == "replay":
            yield from _of_replay(self.store)
        elif self.store is not None:
            yield from _triggers(self.store)
            yield from _survey_findings(self.store)
            yield from _seeds(self.store)

    def selected(self, ids: Collection[str]) -> Iterator[tuple[ReplayInput, Sample]]:
        """Yield the inputs of these ids with their samples, each sample once.

        Of a trigger that several replicas found, the first of these ids stands for all. Entries
        that are removed from a corpus meanwhile may be missing.
        """
        yielded = set()
        for one in self.inputs():
            key = (one.kind, one.seed_id, one.sample)
            if one.id in ids and key not in yielded:
                yielded.add(key)
                sample = self._sample(one.sample)
                if sample is not None:
                    yield one, sample

    def _sample(self, digest: str) -> Sample | None:
        if self.corpus is None:
            assert self.store is not None  # noqa: S101
            return self.store.get_sample(digest)
        try:
            return self.corpus.get_sample(digest)
        except StoreError:
            if self.corpus.known([digest]):
                raise
            return None

    def origin(self) -> ReplayOrigin:
        """Return what a replay stores about it."""
        if self.store is None:
            return ReplayOrigin(self.kind, str(self.folder), self.target)
        return ReplayOrigin(
            self.kind,
            str(self.folder),
            campaign=self.store.id,
            finished=self.store.state.finished,
            models={
                which: {"name": known.get("name"), "sha256": known.get("sha256")}
                for which, known in self.store.models.items()
            },
        )


@contextmanager
def replay_source(folder: Path, target: str | None = None) -> Iterator[ReplaySource]:
    """Open the folder of a campaign, a replay or a corpus. Raises StoreError for any other."""
    folder = Path(folder).absolute()
    if is_corpus(folder):
        with Corpus.open(folder) as corpus:
            yield ReplaySource(folder, "corpus", corpus=corpus, target=target)
        return
    if folder.is_dir() and not is_campaign(folder):
        raise StoreError(
            f"{folder} is neither a campaign's folder nor a corpus: it has no {DATABASE_NAME}; "
            "name the folder that `edgeflare run` made, or that `edgeflare corpus add` did"
        )
    with Store.open(folder) as store:
        kind: SourceKind = "replay" if store.state.is_replay else "campaign"
        yield ReplaySource(folder, kind, store=store)


def _triggers(store: Store) -> Iterator[ReplayInput]:
    """Every triggering input, in the order of the replicas and the seeds."""
    looks = _looks(store)
    labels = {seed.id: seed.label for seed in store.seeds()}
    for found in _found(store):
        yield ReplayInput(
            id=trigger_id(found.seed_id, found.replica),
            kind="trigger",
            deviated=True,
            seed_id=found.seed_id,
            replica=found.replica,
            label=labels.get(found.seed_id),
            original_label=found.original_label,
            deployed_label=found.deployed_label,
            l2=found.l2,
            original_text=text_of(found.original),
            deployed_text=text_of(found.deployed),
            looks=looks.get((found.seed_id, found.trigger or ""), {}),
            sample=found.trigger or "",
        )


def survey_id(one: SurveyRecord) -> str:
    """Return the id of an input of a survey."""
    name = f"{one.phase}:{one.seed_id}:{one.number}"
    return f"{name}@{one.replica}" if one.replica else name


def survey_deviations(store: Store) -> Iterator[SurveyRecord]:
    """Yield the confident deviations of a survey where both models gave a finite answer."""
    for one in store.survey(deviating=True):
        if one.decision is Decision.DEVIATION:
            yield one


def _survey_findings(store: Store) -> Iterator[ReplayInput]:
    """Every confident deviation of the survey: a trigger, of which a seed may have several."""
    seeds = {seed.id: seed for seed in store.seeds()}
    for one in survey_deviations(store):
        seed = seeds[one.seed_id]
        result = ReplayResult(True, top_label(one.deployed), text_of(one.deployed))
        yield ReplayInput(
            id=survey_id(one),
            kind="trigger",
            deviated=True,
            seed_id=one.seed_id,
            replica=one.replica,
            label=seed.label,
            original_label=top_label(one.original),
            deployed_label=top_label(one.deployed),
            l2=l2(store.get_sample(seed.sample), store.get_sample(one.sample)),
            original_text=text_of(one.original),
            deployed_text=text_of(one.deployed),
            looks={one.replica: result} if one.replica else {},
            sample=one.sample,
        )


def _looks(store: Store) -> Mapping[tuple[str, str], Mapping[str, ReplayResult]]:
    """Return each replica's answers on triggering inputs, by seed and sample."""
    looks: dict[tuple[str, str], dict[str, ReplayResult]] = {}
    for one in store.replays():
        if is_answer(one.deployed):
            result = ReplayResult(
                one.decision is Decision.DEVIATION, one.deployed_label, text_of(one.deployed)
            )
            looks.setdefault((one.seed_id, one.trigger), {})[one.on_device] = result
    for found in _found(store):
        if found.replica:
            result = ReplayResult(
                deviated=True,
                deployed_label=found.deployed_label,
                deployed_text=text_of(found.deployed),
            )
            looks.setdefault((found.seed_id, found.trigger or ""), {})[found.replica] = result
    return looks


def _seeds(store: Store) -> Iterator[ReplayInput]:
    """Every seed on which the models agreed on each device that answered."""
    replicas = replica_names(store)
    for of_each in zip(*(store.seeds(replica) for replica in replicas), strict=True):
        seed = of_each[0]
        answers = {
            replica: one.outputs
            for replica, one in zip(replicas, of_each, strict=True)
            if one.outputs is not None
        }
        if not answers or any(one.decision not in AGREED for one in answers.values()):
            continue
        first = next(iter(answers.values()))
        yield ReplayInput(
            id=f"seed:{seed.id}",
            kind="seed",
            deviated=False,
            seed_id=seed.id,
            label=seed.label,
            original_label=top_label(first.original),
            deployed_label=top_label(first.deployed),
            l2=0.0,
            original_text=text_of(first.original),
            deployed_text=text_of(first.deployed),
            looks={
                replica: ReplayResult(False, top_label(one.deployed), text_of(one.deployed))
                for replica, one in answers.items()
                if replica
            },
            sample=seed.sample,
        )


def _of_replay(store: Store) -> Iterator[ReplayInput]:
    """Every input of a replay with its results; one that was not sent is as it was before."""
    now: dict[str, list[ReplayedInput]] = {}
    for one in replayed_inputs(store):
        now.setdefault(one.id, []).append(one)
    samples = {seed.id: seed.sample for seed in store.seeds()}
    for name, before in replay_inputs(store).items():
        yield _updated(replace(before, sample=samples[name]), now.get(name, ()))


def _updated(before: ReplayInput, rows: Sequence[ReplayedInput]) -> ReplayInput:
    """Return an input with the devices' results; those that were not decided change nothing."""
    decided = [one for one in rows if one.decided]
    if not decided:
        return before
    looks = {
        one.device: ReplayResult(one.deviates, one.deployed_label, one.deployed_text)
        for one in decided
    }
    earlier = {name: look for name, look in before.looks.items() if name not in looks}
    deviated = any(one.deviates for one in rows)
    shown = next((one for one in decided if one.deviates == deviated), None)
    return replace(
        before,
        deviated=deviated,
        original_label=before.original_label if shown is None else shown.original_label,
        deployed_label=before.deployed_label if shown is None else shown.deployed_label,
        original_text=before.original_text if shown is None else shown.original_text,
        deployed_text=before.deployed_text if shown is None else shown.deployed_text,
        looks={**earlier, **looks},
    )


def _found(store: Store) -> Iterator[OutcomeRecord]:
    """Every outcome with a triggering input, in the order of the replicas and the seeds."""
    for replica in replica_names(store):
        for outcome in store.outcomes_of(replica):
            if outcome.status in TRIGGERS and outcome.trigger:
                yield outcome
