"""Coverage criteria: the share of units, or of their sections, that inputs exercise.

A unit is a channel, by its mean over space, or a dense unit. A criterion is fitted on profiling
inputs (such as training inputs), updated with test inputs, and tells which share these cover.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import counted
from edgeflare.errors import UsageError
from edgeflare.models.tensors import UnitActivations
from edgeflare_whitebox.activations import Activations

if TYPE_CHECKING:
    from typing_extensions import Self


class CoverageCriterion(ABC):
    """What all coverage criteria share; `model` and `layers` tell what it was made for.

    `name` is its usual abbreviation, `model` the SHA-256 of the model (`model_digest`), `layers`
    are the names of its tensors. `inputs` is the number of inputs that it was updated with.
    """

    def __init__(
        self, name: str, model: str, layers: Sequence[str], settings: Mapping[str, Any]
    ) -> None:
        if not layers:
            raise UsageError(f"{name} needs one layer or more")
        self.name = name
        self.model = model
        self.layers = tuple(layers)
        self.settings = dict(settings)
        self.inputs = 0
        self._sizes: tuple[int, ...] = ()
        self._profile: list[NDArray[Any]] = []
        self._covered: Any = None  # a mask or a set, made once the layers' sizes are known

    def fit(self, inputs: Iterable[Activations]) -> None:
        """Add profiling inputs to those that it was fitted on.

        Raises UsageError after the first `update`, and where a layer is missing or has another
        number of units than before.
        """
        if self.inputs:
            raise UsageError(f"{self.name} has seen test inputs: fit it before it is updated")
        for activations in inputs:
            self._fit_units(self._units(activations), activations.label)

    def update(self, inputs: Iterable[Activations]) -> None:
        """Count what test inputs cover.

        Raises UsageError where it needs a profile and was not fitted, and as `fit` for layers.
        """
        for activations in inputs:
            self._cover(activations)
            self.inputs += 1

    @property
    def score(self) -> float:
        """The share that is covered, 0 to 1; 0 where there is nothing to cover."""
        if self._covered is None or not self._total():
            return 0.0
        return self._count() / self._total()

    def emptied(self) -> "Self":
        """Return one with the same profile that has seen no test input; what it has isn't copied."""
        fresh = copy(self)
        fresh.inputs, fresh._covered = 0, None
        lists = {name: list(value) for name, value in vars(self).items() if isinstance(value, list)}
        vars(fresh).update(lists)  # `fit` adds to them
        return fresh

    def merge(self, other: "CoverageCriterion") -> None:
        """Add what another one has seen, as if its inputs had been this one's.

        Raises UsageError where the two are of different criteria, models, layers or settings, or
        were fitted on different inputs.
        """
        ours, theirs = (
            (each.name, each.model, each.layers, each.settings, len(each._profile))
            for each in (self, other)
        )
        if ours != theirs or not all(
            array is same or np.array_equal(array, same, equal_nan=True)
            for array, same in zip(self._profile, other._profile, strict=True)
        ):
            raise UsageError(
                f"{self.name} and {other.name} can't be merged: both must be of the same model, layers and "
                "settings, and fitted on the same inputs"
            )
        if other._covered is not None:
            self._check_sizes(other._sizes)
            self._covered = (
                other._covered.copy() if self._covered is None else self._covered | other._covered
            )
            self.inputs += other.inputs

    @abstractmethod
    def _fit_units(self, units: NDArray[np.float32], label: int) -> None:
        """Add a profiling input's units and predicted class to the profile; its arrays stay as they are."""

    @abstractmethod
    def _cover(self, activations: Activations) -> None:
        """Add what an input covers to `_covered`."""

    @abstractmethod
    def _count(self) -> int:
        """Return how much is covered."""

    @abstractmethod
    def _total(self) -> int:
        """Return how much can be covered."""

    def _units(self, activations: Activations) -> NDArray[np.float32]:
        """Return the units of all layers, float32 [units]. Raises UsageError as `fit` for layers."""
        try:
            units = [activations.layers[name].units for name in self.layers]
        except KeyError as error:
            raise UsageError(
                f"the activations have no layer {error}, which {self.name} needs"
            ) from None
        self._check_sizes(tuple(layer.size for layer in units))
        return np.concatenate(units)

    def _check_sizes(self, sizes: tuple[int, ...]) -> None:
        if self._sizes not in ((), sizes):
            raise UsageError(
                f"{self.name} was begun with layers of {counted(sum(self._sizes), 'unit')}, and "
                f"these have {sum(sizes):,}"
            )
        self._sizes = sizes


class SectionCriterion(CoverageCriterion):
    """A criterion whose sections, of units or of surprise, are held as one bool each."""

    @abstractmethod
    def sections_of(self, activations: Activations) -> NDArray[np.intp]:
        """Return the places of the sections that an input covers, each once. Raises as `update`."""

    @abstractmethod
    def _places(self) -> int:
        """Return the number of sections, those among them that can't be covered."""

    def _cover(self, activations: Activations) -> None:
        covered = self.sections_of(activations)
        if self._covered is None:
            self._covered = np.zeros(self._places(), bool)
        self._covered[covered] = True

    def _count(self) -> int:
        return int(np.count_nonzero(self._covered))


_ALLOWED: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "threshold": (lambda value: 0 <= value <= 1, "from 0 to 1"),
    "k": (lambda value: value >= 1, "1 or more"),
    "sections": (lambda value: value >= 1, "1 or more"),
    "upper": (lambda value: 0 < value < np.inf, "above 0"),
    "variance": (lambda value: value >= 0, "0 or more"),
    "ridge": (lambda value: value >= 0, "0 or more"),
}
"""What each setting may be, and that in words."""


def all_settings(
    name: str, defaults: Mapping[str, float], settings: Mapping[str, float]
) -> dict[str, float]:
    """Return all settings of a criterion. Raises UsageError for one that it hasn't or can't have."""
    for key, value in settings.items():
        if key not in defaults:
            raise UsageError(f"{name} has no setting {key}; take {', '.join(defaults) or 'none'}")
        allows, words = _ALLOWED[key]
        if not allows(value):
            raise UsageError(f"the setting {key} of {name} is {words}, not {value}")
    return {**defaults, **settings}


class UnitCriterion(SectionCriterion):
    """A criterion over units by its name in `UNIT_RULES`; constant units are counted apart.

    The profile is each unit's least and largest value. Values that aren't finite count for nothing.

    Differences: DeepXplore and DeepGauge count units that are constant over all profiling inputs
    (dead units), too.
    """

    def __init__(self, name: str, model: str, layers: Sequence[str], **settings: float) -> None:
        """Raise UsageError for no layers, and for settings that it can't have."""
        self._section_of, by_default, self._compares, self._per_unit = UNIT_RULES[name]
        super().__init__(name, model, layers, all_settings(name, by_default, settings))

    @property
    def units(self) -> int:
        """Number of units, 0 before an input was seen."""
        return sum(self._sizes)

    @property
    def dead(self) -> int | None:
        """Number of units that are constant over the profiling inputs, None before it was fitted."""
        return int(np.count_nonzero(~self._alive())) if self._profile else None

    def sections_of(self, activations: Activations) -> NDArray[np.intp]:
        """Return the places of the sections that an input covers, unit by unit. Raises as `update`."""
        units = self._units(activations)
        if self._compares and not self._profile:
            raise UsageError(f"{self.name} compares with profiling inputs: fit it before")
        layers = [activations.layers[name] for name in self.layers]
        section = self._section_of(layers, units, *(self._profile or (None, None)), **self.settings)
        covered = np.flatnonzero(self._alive() & (section >= 0))
        return covered * self._sections() + section[covered]

    def _fit_units(self, units: NDArray[np.float32], label: int) -> None:
        del label
        finite = _finite(units)
        least, largest = self._profile or (finite, finite)
        self._profile = [np.fmin(least, finite), np.fmax(largest, finite)]

    def _alive(self) -> NDArray[np.bool_]:
        if not self._profile:
            return np.ones(self.units, bool)
        alive: NDArray[np.bool_] = self._profile[0] < self._profile[1]
        return alive

    def _sections(self) -> int:
        return self._per_unit or int(self.settings["sections"])

    def _total(self) -> int:
        return int(np.count_nonzero(self._alive())) * self._sections()

    def _places(self) -> int:
        return self.units * self._sections()


def scaled_units(layer: UnitActivations) -> NDArray[np.float64]:
    """Return a layer's units in the range of all of its values, 0..1; 0 where that is no range."""
    width = layer.largest - layer.least
    if not 0 < width < np.inf:
        return np.zeros(layer.units.size)
    return (layer.units.astype(np.float64) - layer.least) / width


def _finite(units: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return units with NaN in place of infinity; NaN is neither above nor below anything."""
    return np.where(np.isfinite(units), units, np.float32(np.nan))


def _scaled_above(
    layers: Sequence[UnitActivations], *_: object, threshold: float
) -> NDArray[np.intp]:
    return np.where(np.concatenate([*map(scaled_units, layers)]) > threshold, 0, -1)


def _part_of_range(
    _: object, units: Any, least: Any, largest: Any, *, sections: int
) -> NDArray[np.intp]:
    part = np.full(units.size, -1)
    inside = (units >= least) & (units <= largest) & (least < largest)
    low, high = least[inside].astype(np.float64), largest[inside].astype(np.float64)
    reached = np.floor((units[inside] - low) / ((high - low) / sections)).astype(np.intp)
    part[inside] = np.minimum(reached, sections - 1)  # the largest value is in the last part
    return part


def _side_beyond(_: object, units: Any, least: Any, largest: Any) -> NDArray[np.intp]:
    finite = _finite(units)
    return np.where(finite < least, 0, np.where(finite > largest, 1, -1))


def _above(_: object, units: Any, least: Any, largest: Any) -> NDArray[np.intp]:
    del least
    return np.where(_finite(units) > largest, 0, -1)


def _most_active(layers: Sequence[UnitActivations], *_: object, k: int) -> NDArray[np.intp]:
    top = []
    for layer in layers:
        units = _finite(layer.units)
        first = np.argsort(-units, kind="stable")[:k]
        top.append(np.full(units.size, -1))
        top[-1][first[np.isfinite(units[first])]] = 0
    return np.concatenate(top)


_SectionOf: TypeAlias = Callable[..., NDArray[np.intp]]
UNIT_RULES: Mapping[str, tuple[_SectionOf, Mapping[str, float], bool, int | None]] = {
    "NC": (_scaled_above, {"threshold": 0.75}, False, 1),
    "KMNC": (_part_of_range, {"sections": 1000}, True, None),
    "NBC": (_side_beyond, {}, True, 2),
    "SNAC": (_above, {}, True, 1),
    "TKNC": (_most_active, {"k": 3}, False, 1),
}
"""The criteria over units.

Each is what returns which section of each unit an input reaches, -1 for none, of the layers, their
units, each unit's least and largest profiled value (None where nothing compares with a profile), and
the settings; these settings; whether it compares; and the number of a unit's sections, None: as many as
its setting says.
"""

NC = partial(UnitCriterion, "NC")
"""Neuron coverage: units whose scaled activation is above `threshold` (0.75) for some input.

Each layer's tensor is scaled to 0..1 by its own minimum and maximum on each input, then each channel
is averaged over space. A layer that is constant over an input covers nothing. It need not be fitted;
where it is, dead units are left out.

Source: Pei et al., "DeepXplore", SOSP 2017. The default threshold is that of Gerasimou et al.,
"Importance-Driven Deep Learning System Testing", ICSE 2020, section 5.
"""
KMNC = partial(UnitCriterion, "KMNC")
"""k-multisection neuron coverage: sections of units' profiled ranges that some input reaches.

Each unit's range [low, high] over the profiling inputs has `sections` (1,000) equal parts; a value v
reaches part floor((v - low) / ((high - low) / sections)), high itself the last one. Values outside
the range reach none.

Source: Ma et al., "DeepGauge", ASE 2018; 1,000 sections as in Gerasimou et al., ICSE 2020.
"""
NBC = partial(UnitCriterion, "NBC")
"""Neuron boundary coverage: sides on which some input leaves units' profiled ranges.

A unit has two sides, below its least and above its largest profiled value; equal is within.

Source: Ma et al., "DeepGauge", ASE 2018, with the bounds themselves (sigma 0), as in Gerasimou et
al., ICSE 2020.
"""
SNAC = partial(UnitCriterion, "SNAC")
"""Strong neuron activation coverage: units that some input raises above all profiling inputs.

Source: as NBC.
"""
TKNC = partial(UnitCriterion, "TKNC")
"""Top-k neuron coverage: units that are among the `k` (3) most active of their layer for some input.

Of equal units the first ones count. It need not be fitted; where it is, dead units are left out,
though they may be among the k.

Source: Ma et al., "DeepGauge", ASE 2018; k = 3 as in Gerasimou et al., ICSE 2020.
"""
