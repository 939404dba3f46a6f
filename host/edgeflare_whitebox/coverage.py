"""Coverage criteria over units: the share of units, or of their sections, that inputs exercise.

A unit is a channel, by its mean over space, or a dense unit. A criterion is fitted on profiling
inputs (such as training inputs), updated with test inputs, and tells which share these cover. Two
that were fitted alike can be merged, so that inputs may be divided between processes.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError  # noqa: N812

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.files import replacing
from edgeflare._internal.text import counted, reason
from edgeflare.errors import UsageError
from edgeflare.models.tensors import UnitActivations
from edgeflare_whitebox.activations import Activations

if TYPE_CHECKING:
    from typing_extensions import Self

_FORMAT = 1
_DAMAGED = (
    *(ValueError, KeyError, EOFError, TypeError, AttributeError, OverflowError, RuntimeError),
    *(BadZipFile, ZlibError),
)
_MOST_BYTES = 4 << 30
"""What a saved criterion holds at most, unpacked."""


class CoverageCriterion(ABC):
    """What all coverage criteria share; `model` and `layers` tell what it was made for.

    `model` is the SHA-256 of the model (`model_digest`), `layers` are the names of its tensors.
    `inputs` is the number of inputs that it was updated with. The state is one bool for each unit
    or section, and the profile.
    """

    name: ClassVar[str]
    """Its usual abbreviation."""

    def __init__(self, model: str, layers: Sequence[str], settings: Mapping[str, Any]) -> None:
        if not layers:
            raise UsageError(f"{self.name} needs one layer or more")
        self.model = model
        self.layers = tuple(layers)
        self.settings = dict(settings)
        self.inputs = 0
        self._sizes: tuple[int, ...] = ()

    def fit(self, inputs: Iterable[Activations]) -> None:
        """Add profiling inputs to those that it was fitted on.

        Raises UsageError after the first `update`, and where a layer is missing or has another
        number of units than before.
        """
        if self.inputs:
            raise UsageError(f"{self.name} has seen test inputs: fit it before it is updated")
        for one in inputs:
            self._check_sizes(one)
            self._fit_one(one)

    def update(self, inputs: Iterable[Activations]) -> None:
        """Count what test inputs cover.

        Raises UsageError where it needs a profile and was not fitted, and as `fit` for layers.
        """
        for one in inputs:
            self._cover(one)
            self.inputs += 1

    def gain(self, one: Activations) -> float:
        """Return by how much an input would raise the score, 0 to 1; nothing is changed.

        Raises UsageError as `update`.
        """
        new, total = self._new(one), self._total()
        return new / total if total else 0.0

    @property
    def score(self) -> float:
        """The share that is covered, 0 to 1; 0 where there is nothing to cover."""
        total = self._total()
        return self._count() / total if total else 0.0

    def emptied(self) -> "Self":
        """Return one with the same profile that has seen no test input; what it has isn't copied."""
        other = copy(self)
        other.inputs = 0
        other._clear()
        return other

    def merge(self, other: "CoverageCriterion") -> None:
        """Add what another one has seen, as if its inputs had been this one's.

        Raises UsageError where the two are of different kinds, models, layers or settings, or were
        fitted on different inputs; one that was neither fitted nor updated takes the other's
        profile.
        """
        self._check_mergeable(other)
        if not self._sizes:
            self._sizes = other._sizes
            self._set_profile(other._profile())
        elif other._sizes and not _are_equal(self._profile(), other._profile()):
            raise UsageError(
                f"two {self.name} were fitted on different inputs: merge those that were fitted alike"
            )
        if other.inputs:
            self._join(other)
            self.inputs += other.inputs

    def save(self, path: Path) -> None:
        """Write it to an ``.npz`` file, with its profile. Raises OSError where it can't be written."""
        arrays = {
            "key": np.array(json.dumps({"format": _FORMAT, **self._key()})),
            "sizes": np.array(self._sizes, np.int64),
            "inputs": np.array(self.inputs, np.int64),
            "covered": self._stored(),
            **{f"profile.{name}": value for name, value in self._profile().items()},
        }
        with replacing(path) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    def load(self, path: Path) -> None:
        """Take the place of the one that was saved, profile and all.

        Raises UsageError where that was of another kind, model, layers or settings, or the file
        isn't a saved criterion; OSError where it can't be read.
        """
        try:
            with ZipFile(path) as packed:
                if sum(one.file_size for one in packed.infolist()) > _MOST_BYTES:
                    raise ValueError("it holds more than 4 GiB")
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                stored = {name: archive[name] for name in archive.files}
            key = json.loads(str(stored["key"]))
            known = key.pop("format")
            sizes = tuple(int(one) for one in stored["sizes"])
            inputs, covered = int(stored["inputs"]), stored["covered"]
            if min(inputs, *sizes, 0) < 0:
                raise ValueError("it has a number below 0")
        except _DAMAGED as error:
            raise UsageError(f"{path} is no saved coverage: {reason(error)}") from error
        if known != _FORMAT:
            raise UsageError(f"{path} was saved by another version of EdgeFlare: delete it")
        self._check_same(key, str(path))
        profile = {
            name.removeprefix("profile."): value
            for name, value in stored.items()
            if name.startswith("profile.")
        }
        taken = copy(self)
        taken._sizes, taken.inputs = sizes, inputs
        try:
            taken._set_profile(profile)
            taken._restore(covered)
        except _DAMAGED as error:
            raise UsageError(f"{path} is no saved coverage: {reason(error)}") from error
        vars(self).update(vars(taken))

    @abstractmethod
    def _fit_one(self, one: Activations) -> None:
        """Add a profiling input to the profile."""

    @abstractmethod
    def _clear(self) -> None:
        """Let go of what is covered, and of lists that `fit` would add to, after a copy was made."""

    @abstractmethod
    def _new(self, one: Activations) -> int:
        """Return how much an input covers that no other one did."""

    @abstractmethod
    def _cover(self, one: Activations) -> None:
        """Add what an input covers."""

    @abstractmethod
    def _count(self) -> int:
        """Return how much is covered."""

    @abstractmethod
    def _join(self, other: "CoverageCriterion") -> None:
        """Add what another one of the same kind and profile covers."""

    @abstractmethod
    def _stored(self) -> NDArray[Any]:
        """Return what is covered as an array."""

    @abstractmethod
    def _restore(self, covered: NDArray[Any]) -> None:
        """Take what `_stored` returned. Raises ValueError where that can't be this one's."""

    @abstractmethod
    def _total(self) -> int:
        """Return how much can be covered."""

    @abstractmethod
    def _profile(self) -> dict[str, NDArray[Any]]:
        """Return what fitting leaves, by names; nothing before."""

    @abstractmethod
    def _set_profile(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take what `_profile` returned."""

    def _check_mergeable(self, other: "CoverageCriterion") -> None:
        self._check_same(other._key(), "the other one")
        if self._sizes and other._sizes and self._sizes != other._sizes:
            raise UsageError(
                f"two {self.name} have layers of {counted(sum(self._sizes), 'unit')} and of "
                f"{sum(other._sizes):,}: they are not of the same model"
            )

    def _check_sizes(self, one: Activations) -> None:
        try:
            sizes = tuple(one.layers[name].units.size for name in self.layers)
        except KeyError as error:
            raise UsageError(
                f"the activations have no layer {error}, which {self.name} needs"
            ) from None
        if self._sizes not in ((), sizes):
            raise UsageError(
                f"{self.name} was begun with layers of {counted(sum(self._sizes), 'unit')}, and "
                f"these have {sum(sizes):,}"
            )
        self._sizes = sizes

    def _units(self, one: Activations) -> NDArray[np.float32]:
        """Return the units of all layers, float32 [units]."""
        return np.concatenate([one.layers[name].units for name in self.layers])

    def _key(self) -> dict[str, Any]:
        return {
            "criterion": self.name,
            "model": self.model,
            "layers": list(self.layers),
            "settings": self.settings,
        }

    def _check_same(self, key: Mapping[str, Any], whose: str) -> None:
        """Raise UsageError for what was made for something else; `whose` names it."""
        for what, ours in self._key().items():
            theirs = key.get(what)
            if theirs != ours:
                told = "" if what == "layers" else f" ({_text(theirs)}, not {_text(ours)})"
                raise UsageError(
                    f"{whose} has coverage with {_OTHERS[what]}{told}: measure it again"
                )


class SectionCriterion(CoverageCriterion):
    """A criterion whose sections, of units or of surprise, are held as one bool each."""

    def __init__(self, model: str, layers: Sequence[str], settings: Mapping[str, Any]) -> None:
        super().__init__(model, layers, settings)
        self._covered: NDArray[np.bool_] = np.zeros(0, bool)

    @abstractmethod
    def _covers(self, one: Activations) -> NDArray[np.intp]:
        """Return the places in `_covered` of what an input covers, each once."""

    @abstractmethod
    def _number(self) -> int:
        """Return the length of `_covered`."""

    def _clear(self) -> None:
        self._covered = np.zeros(0, bool)

    def _sections_of(self, one: Activations) -> NDArray[np.intp]:
        self._check_sizes(one)
        self._prepare()
        return self._covers(one)

    def _prepare(self) -> None:
        """Make room for what is covered, once the layers' sizes are known."""
        if not self._covered.size:
            self._covered = np.zeros(self._number(), bool)

    def _new(self, one: Activations) -> int:
        sections = self._sections_of(one)
        return int(np.count_nonzero(~self._covered[sections]))

    def _cover(self, one: Activations) -> None:
        sections = self._sections_of(one)
        self._covered[sections] = True

    def _count(self) -> int:
        return int(np.count_nonzero(self._covered))

    def _join(self, other: CoverageCriterion) -> None:
        assert isinstance(other, SectionCriterion)  # noqa: S101 - the key says so
        self._prepare()
        self._covered |= other._covered

    def _stored(self) -> NDArray[Any]:
        return self._covered

    def _restore(self, covered: NDArray[Any]) -> None:
        if covered.dtype != bool or covered.shape not in ((0,), (self._number(),)):
            raise ValueError(f"it has {covered.shape} places")
        self._covered = covered


class UnitCriterion(SectionCriterion):
    """A criterion over units; those that are constant over the profile are counted apart.

    The profile is each unit's least and largest value. Values that aren't finite count for nothing.

    Differences: DeepXplore and DeepGauge count units that are constant over all profiling inputs
    (dead units), too.
    """

    def __init__(self, model: str, layers: Sequence[str], settings: Mapping[str, float]) -> None:
        super().__init__(model, layers, settings)
        self._least: NDArray[np.float32] | None = None
        self._largest: NDArray[np.float32] | None = None

    @property
    def dead(self) -> int | None:
        """Number of units that are constant over the profiling inputs, None before it was fitted."""
        alive = self._alive()
        return None if alive is None else int(alive.size - np.count_nonzero(alive))

    def merge_profile(self, other: "UnitCriterion") -> None:
        """Add the profiling inputs of another one, as if it had been fitted on them as well.

        Raises UsageError where one of them has seen test inputs, and as `merge` for other settings.
        """
        self._check_mergeable(other)
        if self.inputs or other.inputs:
            raise UsageError("profiles are merged before test inputs are seen")
        if other._least is not None and other._largest is not None:
            self._extend(other._least, other._largest)
            self._sizes = other._sizes

    def _fit_one(self, one: Activations) -> None:
        units = _finite(self._units(one))
        self._extend(units, units)

    def _extend(self, least: NDArray[np.float32], largest: NDArray[np.float32]) -> None:
        if self._least is None or self._largest is None:
            self._least, self._largest = least.copy(), largest.copy()
        else:
            self._least = np.fmin(self._least, least)
            self._largest = np.fmax(self._largest, largest)

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        if self._least is None or self._largest is None:
            raise UsageError(f"{self.name} compares with profiling inputs: fit it before")
        return self._least, self._largest

    def _alive(self) -> NDArray[np.bool_] | None:
        if self._least is None or self._largest is None:
            return None
        alive: NDArray[np.bool_] = self._least < self._largest
        return alive

    def _per_unit(self) -> int:
        """Return the number of places of each unit."""
        return 1

    def _number(self) -> int:
        return sum(self._sizes) * self._per_unit()

    def _total(self) -> int:
        dead = self.dead or 0
        return self._number() - dead * self._per_unit()

    def _places(self, units: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the places of units, without the dead ones."""
        alive = self._alive()
        return np.flatnonzero(units if alive is None else units & alive)

    def _profile(self) -> dict[str, NDArray[Any]]:
        if self._least is None or self._largest is None:
            return {}
        return {"least": self._least, "largest": self._largest}

    def _set_profile(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._least, self._largest = arrays.get("least"), arrays.get("largest")


class NC(UnitCriterion):
    """Neuron coverage: units whose scaled activation is above a threshold for some input.

    Each layer's tensor is scaled to 0..1 by its own minimum and maximum on each input, then each
    channel is averaged over space. A layer that is constant over an input covers nothing. It need
    not be fitted; where it is, dead units are left out.

    Source: Pei et al., "DeepXplore", SOSP 2017. The default threshold is that of Gerasimou et al.,
    "Importance-Driven Deep Learning System Testing", ICSE 2020, section 5.
    """

    name = "NC"

    def __init__(self, model: str, layers: Sequence[str], *, threshold: float = 0.75) -> None:
        """Raise UsageError for a threshold outside 0..1, and for no layers."""
        if not 0 <= threshold <= 1:
            raise UsageError(f"the threshold of NC is from 0 to 1, not {threshold}")
        super().__init__(model, layers, {"threshold": threshold})
        self.threshold = threshold

    def _covers(self, one: Activations) -> NDArray[np.intp]:
        scaled = [scaled_units(one.layers[name]) for name in self.layers]
        return self._places(np.concatenate(scaled) > self.threshold)


class KMNC(UnitCriterion):
    """k-multisection neuron coverage: sections of units' profiled ranges that some input reaches.

    Each unit's range [low, high] over the profiling inputs has `sections` equal parts; a value v
    reaches part floor((v - low) / ((high - low) / sections)), high itself the last one. Values
    outside the range reach none.

    Source: Ma et al., "DeepGauge", ASE 2018; 1,000 sections as in Gerasimou et al., ICSE 2020.
    """

    name = "KMNC"

    def __init__(self, model: str, layers: Sequence[str], *, sections: int = 1000) -> None:
        """Raise UsageError for fewer than one section, and for no layers."""
        if sections < 1:
            raise UsageError(f"KMNC has one section or more, not {sections}")
        super().__init__(model, layers, {"sections": sections})
        self.sections = sections

    def _per_unit(self) -> int:
        return self.sections

    def _covers(self, one: Activations) -> NDArray[np.intp]:
        least, largest = self._bounds()
        units = self._units(one)
        inside = self._places((units >= least) & (units <= largest))
        low, high = least[inside].astype(np.float64), largest[inside].astype(np.float64)
        section = np.floor((units[inside] - low) / ((high - low) / self.sections)).astype(np.intp)
        return inside * self.sections + np.minimum(section, self.sections - 1)


class NBC(UnitCriterion):
    """Neuron boundary coverage: sides on which some input leaves units' profiled ranges.

    A unit has two sides, below its least and above its largest profiled value; equal is within.

    Source: Ma et al., "DeepGauge", ASE 2018, with the bounds themselves (sigma 0), as in
    Gerasimou et al., ICSE 2020.
    """

    name = "NBC"

    def __init__(self, model: str, layers: Sequence[str]) -> None:
        """Raise UsageError for no layers."""
        super().__init__(model, layers, {})

    def _per_unit(self) -> int:
        return 2

    def _covers(self, one: Activations) -> NDArray[np.intp]:
        least, largest = self._bounds()
        units = _finite(self._units(one))
        below, above = self._places(units < least), self._places(units > largest)
        return np.concatenate([2 * below, 2 * above + 1])


class SNAC(UnitCriterion):
    """Strong neuron activation coverage: units that some input raises above all profiling inputs.

    Source: Ma et al., "DeepGauge", ASE 2018, with the bounds themselves (sigma 0), as in
    Gerasimou et al., ICSE 2020.
    """

    name = "SNAC"

    def __init__(self, model: str, layers: Sequence[str]) -> None:
        """Raise UsageError for no layers."""
        super().__init__(model, layers, {})

    def _covers(self, one: Activations) -> NDArray[np.intp]:
        _, largest = self._bounds()
        return self._places(_finite(self._units(one)) > largest)


class TKNC(UnitCriterion):
    """Top-k neuron coverage: units that are among the k most active of their layer for some input.

    Of equal units the first ones count. It need not be fitted; where it is, dead units are left
    out, though they may be among the k.

    Source: Ma et al., "DeepGauge", ASE 2018; k = 3 as in Gerasimou et al., ICSE 2020.
    """

    name = "TKNC"

    def __init__(self, model: str, layers: Sequence[str], *, k: int = 3) -> None:
        """Raise UsageError for k below 1, and for no layers."""
        if k < 1:
            raise UsageError(f"TKNC looks at one unit of a layer or more, not {k}")
        super().__init__(model, layers, {"k": k})
        self.k = k

    def _covers(self, one: Activations) -> NDArray[np.intp]:
        top = np.zeros(sum(self._sizes), bool)
        start = 0
        for name in self.layers:
            units = _finite(one.layers[name].units)
            first = np.argsort(-units, kind="stable")[: self.k]
            top[start + first[np.isfinite(units[first])]] = True
            start += units.size
        return self._places(top)


def scaled_units(layer: UnitActivations) -> NDArray[np.float64]:
    """Return a layer's units in the range of all of its values, 0..1; 0 where that is no range."""
    width = layer.largest - layer.least
    if not 0 < width < np.inf:
        return np.zeros(layer.units.size)
    return (layer.units.astype(np.float64) - layer.least) / width


def _finite(units: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return units with NaN in place of infinity; NaN is neither above nor below anything."""
    return np.where(np.isfinite(units), units, np.float32(np.nan))


def _are_equal(one: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(value, other[name], equal_nan=value.dtype.kind == "f")
        for name, value in one.items()
    )


_OTHERS = {
    "criterion": "another criterion",
    "model": "another model",
    "layers": "other layers",
    "settings": "other settings",
}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items()) or "none"
    return str(value)[:12]
