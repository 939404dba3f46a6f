"""Hypotheses on what units stand for: functions from an input to a number."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

from edgeflare._internal import plugins
from edgeflare.errors import UsageError
from edgeflare.survey.features import FeatureSet
from edgeflare.types import Sample
from edgeflare_whitebox.words.names import SAMPLE_HYPOTHESES

DEVIATES, CLASS, FAMILY = "deviates", "class", "family"
_WHOLE = 100
"""Per cent of the variance."""

_FEATURES = {
    "brightness": "mean brightness",
    "contrast": "contrast (standard deviation)",
    "edges": "edges (mean step between neighbours)",
    "blur": "fine detail (share of the variance)",
    "level": "level (root mean square)",
    "peak": "peak",
    "silence": "share of silence",
}

_OF_AUDIO = ("level", "peak", "silence")
_DIGITS = 9
"""Digits that the number of a class has at most."""


class InputRecord(NamedTuple):
    """An input that units are inspected with, as a hypothesis sees it.

    `sample`: uint8 [height, width, channels] of an image, float32 [samples] of audio. `digest` is
    the SHA-256 that the campaign stores it under. `label` is its class, None where that is unknown;
    `predicted` the class that the original decides for, filled in while units are inspected.
    `deviates` says by device whether the deployed model decides differently on it, of those devices
    alone where that is known; "" is the only device, or the pool. `families` are the survey's
    families that made the input, of a seed or a triggering input none; None where it is unknown.
    Inputs of one `group`, such as those made from one seed, are alike: intervals are the wider for
    it, and all of them train F1 or none. "" is no group.
    """

    sample: Sample
    digest: str = ""
    label: int | None = None
    predicted: int | None = None
    deviates: Mapping[str, bool] = {}
    families: Collection[str] | None = None
    group: str = ""


HypothesisFunction: TypeAlias = Callable[[InputRecord], float | bool | None]
"""Returns a hypothesis' value on an input: finite, or None where it says nothing of this input."""


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis: a `name`, and the `function` that gives its value on each input.

    Values that are all 0 or 1 make it binary (False and True count as these). An input on which the
    function returns None counts for other hypotheses alone. `about` says what it is, in words.
    """

    name: str
    function: HypothesisFunction
    about: str = ""

    def value(self, record: InputRecord) -> float:
        """Return the value on an input, NaN for None.

        Raises UsageError, naming the hypothesis, where its function raises an error, or returns no
        finite number.
        """
        try:
            value: Any = self.function(record)
        except Exception as error:  # the user's code: it may raise anything
            raise UsageError(
                f"the hypothesis {self.name!r} fails on the input {_shown(record)}: "
                f"{type(error).__name__}: {error}; repair its function"
            ) from error
        if value is None:
            return math.nan
        if getattr(value, "ndim", None) == 0:
            value = value.item()
        if not isinstance(value, Real) or not math.isfinite(value):
            told = value if isinstance(value, Real) else f"a {type(value).__name__}"
            raise UsageError(
                f"the hypothesis {self.name!r} returns {told} on the input {_shown(record)}: return a "
                "finite number, or None where it says nothing of an input"
            )
        return float(value)


def is_of_audio(name: str) -> bool:
    """Whether a hypothesis in `SAMPLE_HYPOTHESES` is on audio, else it is on images."""
    return name in _OF_AUDIO


def _shown(record: InputRecord) -> str:
    return record.digest[:12] or "given"


def built_in_hypothesis(
    name: str,
    *,
    rate: int | None = None,
    devices: Collection[str] = (),
    families: Collection[str] = (),
) -> Hypothesis:
    """Return a hypothesis by its name: a built-in one, or one that an installed distribution declares.

    - ``deviates``: the deployed model decides differently on the input, on any device;
      ``deviates:DEVICE`` on that one of `devices`.
    - ``class:K``: the input's label is K or, of an input without label, the original's decision.
    - ``family:NAME``: the survey's family of that name, one of `families`, made the input.
    - those in `SAMPLE_HYPOTHESES`; `rate` is that of audio in Hz, None of images.
    - an entry point of the group ``edgeflare.hypotheses``: a function from an `InputRecord`.

    Raises UsageError for any other name.
    """
    kind, _, which = name.partition(":")
    if kind == DEVIATES:
        if name == DEVIATES:
            return Hypothesis(name, _deviates, "the device decides differently")
        if which in devices:
            return Hypothesis(
                name, lambda one: one.deviates.get(which), f"{which} decides differently"
            )
        raise _unknown(name, [f"{DEVIATES}:{one}" for one in devices])
    if kind == CLASS and which.isdecimal() and len(which) <= _DIGITS:
        wanted = int(which)
        return Hypothesis(name, lambda one: _class_of(one, wanted), f"is of class {wanted}")
    if kind == FAMILY:
        if not families:
            raise UsageError(
                f"the hypothesis {name!r} needs inputs of a survey: there are none among these"
            )
        if which not in families:
            raise _unknown(name, [f"{FAMILY}:{one}" for one in families])
        return Hypothesis(name, lambda one: _made_by(one, which), f"made by the family {which}")
    if name in SAMPLE_HYPOTHESES:
        return _of_sample(name, rate)
    return _of_plugin(name)


def _deviates(one: InputRecord) -> bool | None:
    return any(one.deviates.values()) if one.deviates else None


def _class_of(one: InputRecord, wanted: int) -> bool | None:
    label = one.predicted if one.label is None else one.label
    return None if label is None else label == wanted


def _made_by(one: InputRecord, family: str) -> bool | None:
    return None if one.families is None else family in one.families


def _of_sample(name: str, rate: int | None) -> Hypothesis:
    """Return the hypothesis of a feature; features are of the shape of the first sample."""
    if is_of_audio(name) != (rate is not None):
        kinds = ("images", "audio") if rate is not None else ("audio", "images")
        raise UsageError(
            f"the hypothesis {name!r} is on {kinds[0]}, and these inputs are {kinds[1]}: leave it out"
        )
    known: dict[tuple[int, ...], Callable[[Sample], float]] = {}

    def value(one: InputRecord) -> float:
        shape = one.sample.shape
        if shape not in known:
            known[shape] = FeatureSet(shape, rate).measure(_FEATURES[name])
        found = known[shape](one.sample)
        return _WHOLE - found if name == "blur" else found

    return Hypothesis(name, value, SAMPLE_HYPOTHESES[name])


def _of_plugin(name: str) -> Hypothesis:
    found = plugins.load("hypothesis", name)
    if found is None:
        raise _unknown(name, plugins.names("hypothesis"))
    if not callable(found):
        raise plugins.unusable(
            "hypothesis", name, "is no function from an input record to a number"
        )
    return Hypothesis(name, found, f"of {plugins.origin('hypothesis', name)}")


def _unknown(name: str, others: Collection[str]) -> UsageError:
    known = [DEVIATES, f"{CLASS}:K", f"{FAMILY}:NAME", *SAMPLE_HYPOTHESES, *others]
    return UsageError(f"there is no hypothesis {name!r}; take {', '.join(known)}")
