"""How far two devices with the same model agree, and the differences of those that don't."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, Literal, TypeAlias

from edgeflare.answers import AnswerKind
from edgeflare.store import SeedComparison, Store, TriggerAnswer
from edgeflare.types import Decision, Output

DifferenceKind: TypeAlias = Literal["hardware", "runtime", "system"]
Cause: TypeAlias = Literal["hardware", "runtime", "hardware or runtime", "system", "unexplained"]

_SYSTEM = frozenset({"kernel", "os", "python", "numpy"})
_HARDWARE = frozenset(
    {
        "board",
        "soc",
        "cpu",
        "cpu_flags",
        "arch",
        "runtime.gpu",
        "runtime.compute_capability",
    }
)


@dataclass(frozen=True)
class FingerprintDifference:
    """A field of two devices' fingerprints that differs, its JSON value in `first` and `second`.

    A field of the runtime in effect is named ``runtime.threads``. `side` is what it belongs to:
    "hardware" (board, processor, its flags, architecture, GPU), "runtime" (package, version,
    delegate, kernels, threads, options) or "system" (kernel, operating system, Python, numpy).
    """

    field: str
    first: Any
    second: Any
    side: DifferenceKind

    def named(self, value: Any) -> Any:
        """Return one of the two values for people, such as an Arm processor's name."""
        from edgeflare.devices.cpu_names import shown_name  # devices bring much, as below

        return shown_name(value) if self.field == "cpu" and isinstance(value, str) else value


def what_differs(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[FingerprintDifference, ...]:
    """Return each field of two devices' fingerprints that differs, in their order."""
    from edgeflare.devices.fingerprints import (
        differences,  # devices bring much that figures do without
    )

    return tuple(
        FingerprintDifference(field, here, there, _side(field))
        for field, here, there in differences(first, second)
    )


def cause_of(found: Iterable[FingerprintDifference]) -> Cause:
    """Return what another answer of two devices can come from, by elimination.

    The system is blamed where nothing else differs: the runtime computes the answer on the
    processor, with little of the system's own. "unexplained" where nothing that is known differs.
    """
    sides = {one.side for one in found}
    if {"hardware", "runtime"} <= sides:
        return "hardware or runtime"
    for side in ("hardware", "runtime", "system"):
        if side in sides:
            return side
    return "unexplained"


def _side(field: str) -> DifferenceKind:
    if field in _HARDWARE:
        return "hardware"
    return "system" if field in _SYSTEM else "runtime"


_EXAMPLES = 10


@dataclass(frozen=True)
class Compared:
    """Two devices' answers to the same inputs; each input counts once.

    Of `inputs` that both have answered `bit_equal` have the very same scores in all classes, on
    `labels_differ` of them the top-1 class (the first of those that tie), a word or an object is
    another one, or values are further apart than the tolerance, and on `nonfinite` NaN or infinity
    is in an answer: those have no label and no difference.
    `largest_difference` is the largest one of any class's score, in probability (0 to 1), and
    `largest_on` the seed whose input that was; None where nothing can be subtracted: no inputs,
    transcripts, or a model that returns labels only. `unanswered` inputs have the answer of one of
    both: the other could not answer, or has not yet.
    """

    inputs: int
    bit_equal: int
    labels_differ: int
    nonfinite: int
    unanswered: int
    largest_difference: float | None
    largest_on: str | None


@dataclass(frozen=True)
class OneSided:
    """A triggering input, by its digest, that triggers on `on_device` and not on the other."""

    seed_id: str
    on_device: str
    trigger: str


@dataclass(frozen=True)
class Agreement:
    """What two devices of a replicated campaign answer to the same inputs.

    `seeds` are the campaign's; `triggers` the triggering inputs that either device came upon, one
    that both did counted once, a seed that deviates itself among them. Of those that both have
    answered `on_both` trigger on both devices, so they come of what both share: the model's
    compression. `only_first` and `only_second` trigger on one of the two; on `narrowly` of them the
    other device does not agree with the original either, but ties, or deviates with a margin below
    the floor. `examples` are the first ten of them. `cause` is what those can come from, judged by
    the fingerprints of the two; `differences` is all in which these differ.
    """

    first: str
    second: str
    seeds: Compared
    triggers: Compared
    on_both: int
    only_first: int
    only_second: int
    narrowly: int
    examples: tuple[OneSided, ...]
    cause: Cause
    differences: tuple[FingerprintDifference, ...]


@dataclass(frozen=True)
class EveryDevice:
    """How many triggering inputs trigger wherever they were tried.

    `answered` are the inputs, each counted once, that every one of `devices` devices has answered;
    `on_all` of them trigger on all.
    """

    devices: int
    answered: int
    on_all: int


@dataclass(frozen=True)
class Agreements:
    """How far the devices of a campaign agree: each two of them, and all together."""

    pairs: tuple[Agreement, ...]
    every_device: EveryDevice | None


def agreements(store: Store) -> tuple[tuple[Agreement, ...], EveryDevice | None]:
    """Compare each pair of devices that searched for themselves, and all of them together.

    Nothing and None where devices shared the seeds, or there is one. Reads the store a page at a
    time; raises StoreError.
    """
    names = [name for name in store.state.replicas if name]
    if len(names) < 2:
        return (), None
    kind = store.kind
    tolerance = float((store.campaign.get("search") or {}).get("tolerance") or 0.0)
    pairs = [_Pair(*both, kind, tolerance) for both in combinations(names, 2)]
    answered = on_all = 0
    for seed in store.comparisons(names):
        for pair in pairs:
            pair.add(seed)
        for by_device in seed.triggers.values():
            if len(by_device) == len(names):
                answered += 1
                on_all += all(one.deviates for one in by_device.values())
    fingerprints = _fingerprints(store)
    return tuple(
        pair.agreement(
            what_differs(fingerprints.get(pair.first, {}), fingerprints.get(pair.second, {}))
        )
        for pair in pairs
    ), EveryDevice(len(names), answered, on_all)


@dataclass(frozen=True)
class DeviceCluster:
    """Devices whose answers were the same to the last bit, on every input that two have answered.

    `shared` are the fields of their fingerprints, with the value, that are the same on all of them
    and others on each device outside; none where there is no device outside.
    """

    devices: tuple[str, ...]
    shared: tuple[tuple[str, Any], ...]


def clusters(pairs: Sequence[Agreement]) -> tuple[DeviceCluster, ...]:
    """Return the devices by how they answer, the largest cluster first; () for fewer than three."""
    names = list(dict.fromkeys(name for one in pairs for name in (one.first, one.second)))
    if len(names) < 3:
        return ()
    found = {name: [name] for name in names}
    for one in pairs:
        counts = (one.seeds, one.triggers)
        alike = all(each.bit_equal == each.inputs for each in counts) and any(
            each.inputs for each in counts
        )
        if alike and found[one.first] is not found[one.second]:
            found[one.first] += found[one.second]
            for name in found[one.second]:
                found[name] = found[one.first]
    members = {id(one): sorted(one, key=names.index) for one in found.values()}.values()
    return tuple(
        DeviceCluster(tuple(one), _shared(set(one), pairs))
        for one in sorted(members, key=len, reverse=True)
    )


def _shared(members: set[str], pairs: Sequence[Agreement]) -> tuple[tuple[str, Any], ...]:
    """Return what all members have, and each device outside has otherwise."""
    within = {
        each.field
        for one in pairs
        if {one.first, one.second} <= members
        for each in one.differences
    }
    outside = []
    for one in pairs:
        if len({one.first, one.second} & members) == 1:
            is_first = one.first in members
            outside.append(
                {each.field: each.first if is_first else each.second for each in one.differences}
            )
    return tuple(
        (name, value)
        for name, value in (outside[0].items() if outside else ())
        if name not in within and all(name in one for one in outside)
    )


def _fingerprints(store: Store) -> dict[str, dict[str, Any]]:
    """Return each device's fingerprint by name; of equivalent devices maybe one name only."""
    return store.fingerprints() or {one.name: one.fingerprint for one in store.devices()}


class _Comparing:
    """Running counts for `Compared`.

    Answers of a measured kind that are further apart than `tolerance` count as another decision.
    """

    def __init__(self, kind: AnswerKind[Any], tolerance: float) -> None:
        self._kind, self._tolerance = kind, tolerance
        self._counts: Counter[str] = Counter()
        self._largest: tuple[float, str] | None = None

    def add(self, seed_id: str, first: Output | None, second: Output | None) -> None:
        counts, kind = self._counts, self._kind
        if first is None or second is None:
            counts["unanswered"] += (first is None) != (second is None)
            return
        counts["inputs"] += 1
        counts["bit_equal"] += kind.is_same(first, second)
        if not (kind.is_finite(first) and kind.is_finite(second)):
            counts["nonfinite"] += 1
            return
        if kind.is_measured:
            counts["labels_differ"] += kind.distance(first, second) > self._tolerance
        else:
            counts["labels_differ"] += not kind.agree(first, second)
        difference = kind.score_difference(first, second)
        if difference is not None and (self._largest is None or difference > self._largest[0]):
            self._largest = difference, seed_id

    def compared(self) -> Compared:
        counts = self._counts
        return Compared(
            counts["inputs"],
            counts["bit_equal"],
            counts["labels_differ"],
            counts["nonfinite"],
            counts["unanswered"],
            *(self._largest or (None, None)),
        )


class _Pair:
    """Running comparison of two devices."""

    def __init__(
        self, first: str, second: str, kind: AnswerKind[Any], tolerance: float = 0.0
    ) -> None:
        self.first, self.second = first, second
        self.seeds, self.triggers = _Comparing(kind, tolerance), _Comparing(kind, tolerance)
        self.counts = dict.fromkeys(("on_both", "only_first", "only_second", "narrowly"), 0)
        self.examples: list[OneSided] = []

    def add(self, seed: SeedComparison) -> None:
        self.seeds.add(seed.seed_id, seed.answers.get(self.first), seed.answers.get(self.second))
        for digest, by_device in seed.triggers.items():
            first, second = by_device.get(self.first), by_device.get(self.second)
            if any(one is not None and one.found for one in (first, second)):
                self._add_trigger(seed.seed_id, digest, first, second)

    def _add_trigger(
        self, seed_id: str, digest: str, first: TriggerAnswer | None, second: TriggerAnswer | None
    ) -> None:
        self.triggers.add(seed_id, first and first.deployed, second and second.deployed)
        if first is None or second is None:
            return
        if first.deviates and second.deviates:
            self.counts["on_both"] += 1
            return
        self.counts["only_first"] += first.deviates
        self.counts["only_second"] += second.deviates
        on_device, other = (self.first, second) if first.deviates else (self.second, first)
        if len(self.examples) < _EXAMPLES:
            self.examples.append(OneSided(seed_id, on_device, digest))
        self.counts["narrowly"] += other.decision in (Decision.TIE, Decision.BELOW_FLOOR)

    def agreement(self, differences: Iterable[FingerprintDifference]) -> Agreement:
        found = tuple(differences)
        return Agreement(
            first=self.first,
            second=self.second,
            seeds=self.seeds.compared(),
            triggers=self.triggers.compared(),
            **self.counts,
            examples=tuple(self.examples),
            cause=cause_of(found),
            differences=found,
        )


TriggerCause: TypeAlias = Literal["compression", "not attributed"] | Cause

NOT_ATTRIBUTED: TriggerCause = "not attributed"


class Causes:
    """Causes of triggers, seed by seed in the order of the seeds.

    The cause of an input that triggers on every device that answered it is what all share:
    "compression". Where it does so on some only, the cause is judged by `cause_of` from the
    fingerprints of the two devices that are most alike of all pairs in which it triggers on one and
    not on the other. "not attributed" where devices shared the seeds, there is one, or no other
    device has answered.
    """

    def __init__(self, store: Store, replicas: Sequence[str]) -> None:
        self._comparisons: Iterator[SeedComparison] = iter(())
        if len(replicas) > 1:
            self._comparisons = store.comparisons(replicas)
        self._prints = _fingerprints(store) if len(replicas) > 1 else {}
        self._here: SeedComparison | None = None
        self._differences = cache(self._what_differs)

    def of(self, seed_id: str, trigger: str | None) -> TriggerCause:
        """Return the cause of a trigger, by the digest of its sample.

        Seeds must come in their order; one may come several times in a row. Raises StoreError.
        """
        while self._here is None or self._here.seed_id != seed_id:
            self._here = next(self._comparisons, None)
            if self._here is None:
                return NOT_ATTRIBUTED
        return self._cause(self._here.triggers.get(trigger or "", {}))

    def _cause(self, answers: Mapping[str, TriggerAnswer]) -> TriggerCause:
        triggering = [name for name, answer in answers.items() if answer.deviates]
        others = [name for name, answer in answers.items() if not answer.deviates]
        if len(answers) < 2:
            return NOT_ATTRIBUTED
        if not others:
            return "compression"
        pairs = [self._differences(one, other) for one in triggering for other in others]
        pairs.sort(key=len)
        return cause_of(pairs[0]) if pairs else NOT_ATTRIBUTED

    def _what_differs(self, first: str, second: str) -> tuple[FingerprintDifference, ...]:
        return what_differs(self._prints.get(first, {}), self._prints.get(second, {}))
