"""The records of a trigger corpus, and the rows that they are stored as."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, NamedTuple

from edgeflare.answers.parts import Margins
from edgeflare.store.mapped import Digest, Id, LongText, SampleDigest
from edgeflare.types import Sample, Status


def target_name(model: str, device: str) -> str:
    """Return the name of a deployed model on a device as a replay's target: ``model/device``."""
    return f"{model}/{device}"


class Form(NamedTuple):
    """The shape [height, width, channels] and the number of classes of all entries of a corpus.

    Audio, which may be of any length, has the shape () and its `rate` in Hz.
    """

    shape: tuple[int, ...]
    classes: int
    rate: int | None = None

    @classmethod
    def of(cls, sample: Sample, classes: int, rate: int | None) -> "Form":
        """Return the form of a sample; `rate` is None for an image."""
        return cls(sample.shape if rate is None else (), classes, rate)


@dataclass(frozen=True)
class TriggerRecord:
    """A confirmed triggering input, as one campaign found it on one device.

    `sample` and `seed_sample` are digests, one and the same where the seed itself is the trigger;
    both labels are class indices. `l2` is the distance to the seed on a scale of pixels from 0 to
    1, `linf` in levels; the margins are top-1 minus top-2 probability, None where a device returns
    labels only. `model` is what the deployed model is called, `campaign` the campaign's id.
    """

    sample: SampleDigest
    seed_sample: Annotated[Digest, "seed_digest"]
    seed_id: LongText
    seed_label: int | None
    status: Status
    original_label: int
    deployed_label: int
    original_margin: float | None
    deployed_margin: float | None
    l2: float
    linf: int
    original_sha256: Digest
    deployed_sha256: Digest
    model: LongText
    device: LongText
    campaign: Id
    found_at: datetime

    @property
    def severity(self) -> float | None:
        """The smaller margin of both models, 0 to 1; the only one where the other is unknown."""
        return Margins(self.original_margin, self.deployed_margin).smaller


@dataclass(frozen=True)
class CorpusEntry(TriggerRecord):
    """A triggering input in a corpus, as it was first found.

    `position` is its number in the corpus, never used twice. `deviated_at` is when it last deviated
    on any target; `agreeing_since` when a target first agreed after that, None where none did.
    """

    position: int
    deviated_at: datetime
    agreeing_since: datetime | None

    @property
    def id(self) -> str:
        """Its name in replays of the corpus: unique, and always the same."""
        return f"{self.position:06d}/{self.seed_id}"


@dataclass(frozen=True)
class DeviceAnswer:
    """What a deployed model on a device answered to an entry when it was last asked.

    `sample` is the entry's digest; `replay` the id of that campaign or replay. `since`: when
    the present series of equal answers began.
    """

    sample: str
    model: LongText
    device: LongText
    deployed_sha256: Digest
    deviated: bool
    original_label: int | None
    deployed_label: int | None
    looked_at: datetime
    since: datetime | None = field(default=None, kw_only=True)
    replay: Id

    @property
    def target(self) -> str:
        """The deployed model and the device, as ``model/device``."""
        return target_name(self.model, self.device)


class Added(NamedTuple):
    """How many of the triggering inputs given to `Corpus.add` were added.

    `new` were added, `replaced` entries were removed in exchange; `known` were there already, to
    the bit; `near` are near duplicates that were not added.
    """

    new: int
    replaced: int
    known: int
    near: int


class CorpusRemoved(NamedTuple):
    """How many entries, unused sample files and bytes were removed, or would be.

    `kept` are entries that stay because another deployed model deviated on them as well.
    """

    entries: int
    samples: int
    bytes: int
    kept: int


class CorpusCampaign(NamedTuple):
    """A campaign that was added: its id, models, and numbers of triggers and near duplicates."""

    id: Id
    model: LongText
    original_sha256: Digest
    deployed_sha256: Digest
    added_at: datetime
    triggers: int
    near: int


def answer_of(trigger: TriggerRecord) -> DeviceAnswer:
    """Return the target's answer that a triggering input states."""
    return DeviceAnswer(
        trigger.sample,
        trigger.model,
        trigger.device,
        trigger.deployed_sha256,
        deviated=True,
        original_label=trigger.original_label,
        deployed_label=trigger.deployed_label,
        looked_at=trigger.found_at,
        replay=trigger.campaign,
    )


def entries_to_keep(group: Sequence[TriggerRecord], at_most: int) -> list[int]:
    """Return the indices, in order, of the triggering inputs of a seed and class pair that stay.

    `group` is in the order they came. The first stays, then the nearest to the seed, then the
    severest; what room is left is for the older ones. Of two equally near or severe ones the older
    counts.
    """
    if len(group) <= at_most:
        return list(range(len(group)))
    every = range(len(group))
    nearest = min(every, key=lambda one: (group[one].l2, one))
    severest = max(every, key=lambda one: (group[one].severity or 0.0, -one))
    wanted = dict.fromkeys((0, nearest, severest, *every))
    return sorted(list(wanted)[:at_most])
