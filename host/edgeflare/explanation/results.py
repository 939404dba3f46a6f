"""What the findings of a campaign come of, as a campaign stores it, and what shrinking made of them.

All of it is numbers and codes; `edgeflare.words.causes` has the sentences.
"""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BeforeValidator, PlainSerializer, computed_field

from edgeflare._internal.records import JsonRecord, in_json
from edgeflare.answers.parts import later
from edgeflare.campaign.status import replica_names
from edgeflare.store import Store
from edgeflare.store.location import is_campaign
from edgeflare.store.records import PairOnInput
from edgeflare.triage.cause import NAME as TRIAGE
from edgeflare.triage.cause import Cause, CauseKind, Triage
from edgeflare.types import TRIGGERS

_EARLIER = {"instruction set": "hardware", "not repeatable": "not-repeatable"}
"""Kinds as earlier versions stored them, in today's words."""
FindingCause: TypeAlias = Annotated[
    CauseKind | Literal["rounding", "unanswered"],
    BeforeValidator(lambda kind: _EARLIER.get(kind, kind)),
]
"""What a finding comes of: a kind of a triage, which a rung of the ladder adds to the one before it.
"rounding": the original decides otherwise by other kernels, too; "unanswered": a model can't answer
it any more."""

RemarkCode: TypeAlias = Literal[
    # what can't be told apart, of a whole explanation
    "no control",
    "no runtime here",
    "no float model",
    "device is here",
    "repaired",
    "out of range",
    "begun before",
    "few queries",
    "another float model",
    "preprocessing unknown",
    "another network",
    "layers unknown",
    "device layers unknown",
    "disturbed",
    "saturated",
    "not triaged",
    # doubts of one finding's cause
    "earlier deviates",
    "unanswered step",
    "more by another",
    "varies",
    "hardware as well",
]
"""What a `Remark` is about."""


@dataclass(frozen=True)
class Remark:
    """Something to be said of a result: a code, and the names and numbers that belong to it."""

    code: RemarkCode
    data: dict[str, str | int | float] = field(default_factory=dict)


NAME = "explain"
"""The name of the analysis under which a campaign has its explanation."""
_NAMES = (NAME, "explanation")  # the second one is that of earlier versions
DEVICE_QUERIES = 2000
"""What devices are sent at most in all to explain a campaign's findings, by default."""
EACH = 20
"""Device queries to shrink each finding, at most, without its confirmation, by default."""
EXPLANATION_FOLDER = "explanation"
"""Name of the folder, in a campaign's, with the replays of its rungs."""
DEVICE = "device"
"""The last rung: the deployed model on the device, as the campaign ran it."""
EXACT = "device-exact"
"""What the device is asked besides where its 8-bit products may saturate: it with exact ones."""
SHRUNK_FOLDER = "shrunk"
"""Name of the folder, in a campaign's, with the campaign that shrinks its findings."""


@dataclass(frozen=True)
class RungAnswer:
    """What the model of one rung answers to a finding.

    `deviates`: it decides otherwise than the original, None where it can't answer. `margin`: the
    probability of the class that the deployed model decides for on the device, less that of the
    original's class, -1 to 1; None of transcripts and of models that return a label alone.
    """

    rung: str
    deviates: bool | None
    margin: float | None


@dataclass(frozen=True, kw_only=True)
class ExplainedFinding(PairOnInput):
    """One finding and what it comes of.

    `id` is that of the input in a replay of the campaign. `replica` is the device that found it where
    each searched for itself, `device` the one that answered now. `cause` is that of `rung`: the
    first one from which on all deviate, or what the device was asked besides. `doubt` says why that may be another one, a text in
    campaigns of older versions. `answers` begin with the original's own margin; differences of
    margins of one to the next are what each rung contributes, and add up to the whole change.
    """

    device: str
    cause: FindingCause
    rung: str
    doubt: tuple[Remark, ...] | str = ()
    answers: tuple[RungAnswer, ...]
    fault: str = ""

    @property
    def labels(self) -> tuple[int, int] | None:
        """The original's label and the deployed model's; None of transcripts."""
        if self.original_label is None or self.deployed_label is None:
            return None
        return self.original_label, self.deployed_label

    def margin_on(self, rung: str) -> float:
        """Return the margin on a rung that has one; KeyError for another."""
        return {answer.rung: answer.margin for answer in self.answers if answer.margin is not None}[
            rung
        ]

    @in_json
    def contributions(self) -> dict[str, float]:
        """The change of the margin on each rung, by its name; empty where margins aren't known."""
        margins = [answer.margin for answer in self.answers]
        if None in margins:
            return {}
        steps = np.diff(np.array(margins, dtype=float)).tolist()
        return dict(zip([answer.rung for answer in self.answers[1:]], steps, strict=True))


@dataclass(frozen=True)
class TensorFigures:
    """How a quantised tensor holds the values of the original's, over several inputs.

    `sqnr` is the power of the original's values over that of the differences, in dB; None where
    they are the same. `clipped` is the share (0 to 1) of the original's values outside the range
    that the deployed tensor can hold, `levels` the share of its integers that occur: None of a
    tensor that isn't quantised.
    """

    sqnr: float | None
    clipped: float | None
    levels: float | None


@dataclass(frozen=True)
class LayerFigures:
    """A layer of the deployed model, and what it contributes to the findings' margins.

    `name` is the original's tensor (or tensors, separated by commas) at its end, `deployed` are the
    deployed model's, `operators` its operators. `mean`, `median` and `largest` are those of the
    contributions: changes of the margin, see `ExplainedFinding`. `restored` is the number of
    findings on which the deployed model would decide as the original does were this layer alone as
    the original's: a prediction, the contribution taken off. `findings` and `seeds` are the
    tensor's figures on both, the worse one's of several.
    """

    name: str
    deployed: tuple[str, ...]
    operators: str
    mean: float
    median: float
    largest: float
    restored: int
    findings: TensorFigures
    seeds: TensorFigures


@dataclass(frozen=True)
class Layers:
    """What the layers contribute to findings that come of the deployed file or of the device.

    `layers` are in their order. `original` and `deployed` are the files' names: the same file where it
    is the device that makes the difference. `contributions` have a number for each layer, by
    the finding's id: they add up to the change of the margin from the first to the second.
    `unmatched` are tensors of the deployed model of which none of the original's holds the same.
    `changed`: by so much, at most, an answer changed when the tensors were read. On a device that
    may not be: `disturbed` are the ids of the findings that are left out for it, and
    `device_queries` is what reading cost.
    """

    original: str
    deployed: str
    layers: tuple[LayerFigures, ...]
    contributions: dict[str, tuple[float, ...]]
    unmatched: tuple[str, ...]
    changed: float
    disturbed: tuple[str, ...] = ()
    device_queries: int = 0

    def main_layer(self, finding: str) -> str:
        """Return the name of the layer that makes half of a finding's change or more, else ""."""
        changes = self.contributions.get(finding, ())
        largest = max(changes, default=0.0)
        if not changes or 2 * largest < sum(changes):
            return ""
        return self.layers[changes.index(largest)].name


@dataclass(frozen=True)
class ShrunkTo:
    """The nearer input that a finding was shrunk to: the digest of its sample there, and its L2.

    The labels are the original's and the deployed model's answers to it.
    """

    sample: str
    l2: float
    original_label: int | None = None
    deployed_label: int | None = None

    def is_like(self, finding: "ExplainedFinding | FindingGroup") -> bool:
        """Whether the models decide for a finding's classes here, too."""
        own = (self.original_label, self.deployed_label)
        return own == (finding.original_label, finding.deployed_label)


@dataclass(frozen=True)
class FindingGroup:
    """Findings that come of one cause and main layer, have the same labels and the same fault.

    `nearest` is nearest to its seed, as `shrunk` where it was shrunk; before others come those that
    keep the group's classes then. `members` are the ids of all. `doubtful` of the `count` have a
    doubt. Transcripts have no labels. `layer` is "" where no layer makes half of the change, `fault` where the findings belong
    to none of the survey's.
    """

    cause: FindingCause
    layer: str
    fault: str
    original_label: int | None
    deployed_label: int | None
    count: int
    doubtful: int
    nearest: ExplainedFinding
    shrunk: ShrunkTo | None = None
    members: tuple[str, ...] = ()

    @property
    def l2(self) -> float | None:
        """The distance of the nearest to its seed, shrunk where it was."""
        return self.nearest.l2 if self.shrunk is None else self.shrunk.l2


@dataclass(frozen=True)
class KindFigures:
    """What one kind of cause makes of all findings that are explained.

    So many `findings` come of it, of which `doubtful` have a doubt. `mean` is its contribution to the
    change of the margin, over all findings whose margins are known; `share` is that over the mean of
    the whole change, so that the shares of all kinds add up to 1. None where no margin is known.
    """

    kind: FindingCause
    findings: int
    doubtful: int
    mean: float | None
    share: float | None


_GroupKey: TypeAlias = tuple[FindingCause, str, str, int | None, int | None]


@dataclass(frozen=True)
class Explanation:
    """What the findings of a campaign come of.

    `rungs` are (name, cause, file) of those that were asked; a file is named where it isn't the
    deployed one. In campaigns of older versions that is a description, and `notices` and
    `device_unread` are texts. `left_out` findings are not explained since `device_queries`, what the
    devices were asked in all, has a limit. `notices` say what can't be told apart. `layers` are of the findings that come of the deployed file; None where
    there are none, or no tensors can be read. `device_layers` are of those that only the device shows,
    from this machine to the device; `device_unread` is why its tensors can't be read, empty where that
    isn't known. `replay` is the folder, in the campaign's, with the
    replay of the last rung: the devices' answers. `shrunk` has the findings by id that were shrunk since.
    `pair_cause` is the first cause of the campaign's triage where that is of a kind which no rung adds.
    """

    findings: tuple[ExplainedFinding, ...]
    rungs: tuple[tuple[str, FindingCause, str], ...]
    left_out: int
    device_queries: int
    notices: tuple[Remark | str, ...]
    layers: Layers | None = None
    device_layers: Layers | None = None
    device_unread: tuple[Remark, ...] | str = ()
    replay: str = f"{EXPLANATION_FOLDER}/{DEVICE}"
    shrunk: dict[str, ShrunkTo] = field(default_factory=dict)
    pair_cause: Cause | None = None

    @in_json
    def kinds(self) -> tuple[KindFigures, ...]:
        """What each kind makes of all findings: those that most come of first.

        What the device changes is of the kind that it was charged to; of findings that come of
        something else, of the kind of the device's rung.
        """
        of_rung = {name: kind for name, kind, _ in self.rungs}
        changes: dict[FindingCause, float] = {}
        measured = [finding for finding in self.findings if finding.contributions]
        for finding in measured:
            is_of_device = finding.rung not in finding.contributions or finding.rung == DEVICE
            for rung, change in finding.contributions.items():
                is_told = is_of_device and rung == DEVICE
                kind = finding.cause if is_told else of_rung[rung]
                changes[kind] = changes.get(kind, 0.0) + change
        total, counts = sum(changes.values()), self.counts
        figures = [
            KindFigures(
                kind,
                counts.get(kind, 0),
                sum(bool(one.doubt) for one in self.findings if one.cause == kind),
                changes[kind] / len(measured) if kind in changes else None,
                changes[kind] / total if kind in changes and total > 0 else None,
            )
            for kind in dict.fromkeys((*counts, *changes))
        ]
        return tuple(sorted(figures, key=lambda one: (-one.findings, -(one.share or 0.0))))

    @in_json
    def counts(self) -> dict[FindingCause, int]:
        """The number of findings of each cause, most first."""
        return dict(Counter(finding.cause for finding in self.findings).most_common())

    def main_layer(self, finding: str) -> str:
        """Return the name of a finding's main layer, here or on the device; "" where none is known."""
        known = (one.main_layer(finding) for one in (self.layers, self.device_layers) if one)
        return next(filter(None, known), "")

    @property
    def groups(self) -> tuple[FindingGroup, ...]:
        """The findings by cause and labels, the largest group first, then the nearest."""
        groups: dict[_GroupKey, list[ExplainedFinding]] = {}
        for finding in self.findings:
            key = (
                finding.cause,
                self.main_layer(finding.id),
                finding.fault,
                finding.original_label,
                finding.deployed_label,
            )
            groups.setdefault(key, []).append(finding)
        found = []
        for key, some in groups.items():
            nearest = min(some, key=self._distance)
            doubtful = sum(bool(one.doubt) for one in some)
            shrunk, members = self.shrunk.get(nearest.id), tuple(one.id for one in some)
            found.append(FindingGroup(*key, len(some), doubtful, nearest, shrunk, members))
        return tuple(sorted(found, key=lambda one: (-one.count, self._distance(one.nearest))))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names, and all that is said in words."""
        plain: dict[str, Any] = later("edgeflare.words.causes:explanation_json", self)
        return plain

    def _distance(self, finding: ExplainedFinding) -> tuple[bool, float]:
        """Return whether shrinking changed a finding's classes, and how near it is then."""
        shrunk = self.shrunk.get(finding.id)
        l2 = finding.l2 if shrunk is None else shrunk.l2
        return shrunk is not None and not shrunk.is_like(finding), math.inf if l2 is None else l2


def stored_explanation(store: Store) -> Explanation | None:
    """Return the explanation of a campaign, None before it has one. Raises StoreError."""
    parts = ("layers", "device_layers")
    stored = (store.result(name, Explanation, parts=parts) for name in _NAMES)
    explanation = next(filter(None, stored), None)
    return None if explanation is None else completed(explanation, store)


def explained_devices(store: Store) -> Path | None:
    """Return the folder of the replay in which each device answered a campaign's findings.

    None where the findings were not explained, or by one device. Raises StoreError.
    """
    found = stored_explanation(store)
    if found is None or not is_campaign(store.folder / found.replay):
        return None
    with Store.open(store.folder / found.replay) as replay:
        return replay.folder if len(replica_names(replay)) > 1 else None


_DIVIDED: frozenset[CauseKind] = frozenset(
    ["compression", "kernels", "accelerator", "hardware", "device"]
)
"""Kinds whose part in a pair's deviations is what an explanation measures."""


def completed(explanation: Explanation, store: Store) -> Explanation:
    """Return an explanation with what the campaign's findings were shrunk to, and its triage's cause."""
    triage = store.result(TRIAGE, Triage)
    if triage is not None:
        first = next(iter(triage.causes), None) if not triage.is_healthy else None
        other = None if first is None or first.kind in _DIVIDED else first
        explanation = replace(explanation, pair_cause=other)
    if not is_campaign(store.folder / SHRUNK_FOLDER):
        return replace(explanation, shrunk={})
    with Store.open(store.folder / SHRUNK_FOLDER) as nearer:
        shrunk = {
            outcome.seed_id: ShrunkTo(
                outcome.trigger, outcome.l2, outcome.original_label, outcome.deployed_label
            )
            for replica in replica_names(nearer)
            for outcome in nearer.outcomes_of(replica)
            if outcome.status in TRIGGERS and outcome.trigger is not None and outcome.l2 is not None
        }
    return replace(explanation, shrunk=shrunk)


@dataclass(frozen=True)
class Distances:
    """Distances of an input to its seed input, as `edgeflare.metrics` has them.

    `ssim` is None of audio, of small images, and without scikit-image.
    """

    l2: float
    linf: int
    ssim: float | None


@dataclass(frozen=True)
class ShrunkFinding:
    """A finding before and after.

    `id` is that of the input in a replay of its campaign. `sample` is the digest of the nearer input
    in the shrinking campaign's store; None, and `after` as `before`, where no nearer one was confirmed.
    `device_queries` are those of its search, `confirmations` those that repeated it. `words_before`
    and `words_after` say what made a natural one, such as "JPEG quality 12"; "" of others.
    `classes_before` and `classes_after` are those that the original and the deployed model decide
    for; None of transcripts.
    """

    id: str
    seed_id: str
    before: Distances
    after: Distances
    sample: str | None
    device_queries: int
    confirmations: int
    words_before: str = ""
    words_after: str = ""
    classes_before: tuple[int, int] | None = None
    classes_after: tuple[int, int] | None = None


@dataclass(frozen=True)
class ShrunkFindings(JsonRecord):
    """The findings of a campaign, shrunk; `folder` has them as the triggers of a campaign.

    `left_out` findings are seed inputs themselves: there is nothing to shrink.
    """

    folder: str
    findings: tuple[ShrunkFinding, ...]
    left_out: int

    @computed_field(  # type: ignore[prop-decorator] # JSON has how many
        return_type=Annotated[tuple[ShrunkFinding, ...], PlainSerializer(len, return_type=int)]
    )
    @property
    def shrunk(self) -> tuple[ShrunkFinding, ...]:
        """Those of which a nearer input was confirmed."""
        return tuple(finding for finding in self.findings if finding.sample is not None)

    @in_json
    def l2_share(self) -> float | None:
        """The median of L2 after over L2 before; None without findings."""
        return (
            median(finding.after.l2 / finding.before.l2 for finding in self.findings)
            if self.findings
            else None
        )
