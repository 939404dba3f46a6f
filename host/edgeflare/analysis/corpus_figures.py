"""A trigger corpus in figures."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from edgeflare.store.corpus import Corpus
from edgeflare.store.corpus_records import EntryLook


class CorpusPair(NamedTuple):
    """A pair of classes, the original's and the deployed model's, and how many entries have it."""

    original_label: int
    deployed_label: int
    entries: int


@dataclass(frozen=True)
class CorpusTarget:
    """What a deployed model on a device said when it last looked at the entries.

    `deviating`, `agreeing` and `unseen` (never looked at) are all entries of the corpus together.
    """

    model: str
    device: str
    deviating: int
    agreeing: int
    unseen: int
    looked_at: datetime


@dataclass(frozen=True)
class CorpusSummary:
    """A corpus in figures.

    `shape` of the inputs is [height, width, channels], of audio [], with `rate` in Hz, which images have not; it and
    `classes` are None until something was added. `seeds` counts the seed inputs that entries come from, `sightings` how often entries were found,
    `near` the near duplicates that were refused. `pairs` are by the number of entries. `models` says
    how many entries each deployed model showed, `originals` how many each original model's file
    (SHA-256). `found_first` and `found_last` are those of the entries, UTC; `size` is in bytes.
    """

    folder: str
    id: str
    created_at: datetime
    per_pair: int
    shape: tuple[int, ...] | None
    classes: int | None
    entries: int
    seeds: int
    campaigns: int
    sightings: int
    near: int
    pairs: tuple[CorpusPair, ...]
    models: dict[str, int]
    originals: dict[str, int]
    targets: tuple[CorpusTarget, ...]
    found_first: datetime | None
    found_last: datetime | None
    size: int
    rate: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names; moments are ISO 8601."""
        return {
            **asdict(self),
            "created_at": self.created_at.isoformat(),
            "pairs": [pair._asdict() for pair in self.pairs],
            "targets": [
                {**asdict(target), "looked_at": target.looked_at.isoformat()}
                for target in self.targets
            ],
            "found_first": self.found_first and self.found_first.isoformat(),
            "found_last": self.found_last and self.found_last.isoformat(),
        }


def corpus_summary(corpus: Corpus | Path) -> CorpusSummary:
    """Tell what a corpus has. Raises StoreError where its folder can't be used."""
    if not isinstance(corpus, Corpus):
        with Corpus.open(corpus) as there:
            return corpus_summary(there)
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
        targets=_targets(corpus.looks(), len(entries)),
        found_first=min(found, default=None),
        found_last=max(found, default=None),
        size=corpus.size(),
    )


def _targets(looks: Iterable[EntryLook], entries: int) -> tuple[CorpusTarget, ...]:
    of_target: dict[tuple[str, str], list[EntryLook]] = defaultdict(list)
    for look in looks:
        of_target[look.model, look.device].append(look)
    return tuple(
        CorpusTarget(
            model,
            device,
            deviating=sum(look.deviated for look in there),
            agreeing=sum(not look.deviated for look in there),
            unseen=entries - len(there),
            looked_at=max(look.looked_at for look in there),
        )
        for (model, device), there in sorted(of_target.items())
    )
