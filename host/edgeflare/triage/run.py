"""A triage from its first check to the ranked causes. Bounded by counts, never by a clock.

The order: what stands in the files, whether answers can be used, the device against the same file here,
inputs and labels; then, where the pair is off, corrections (exchanged, another form, the same tensor),
and where none helps the layers and the ways of feeding.

Further checks are functions of the entry points ``edgeflare.causes``: each is given the `Pair`, where that
is off and no change was found that makes it agree, and yields a `Cause` for what it finds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from edgeflare._internal import plugins
from edgeflare.errors import EdgeFlareError
from edgeflare.triage.agreement import FEWEST_SEEDS, least_agreement
from edgeflare.triage.cause import COARSE, CORRECTED, REMARK, Cause, Triage, change_of, ranked
from edgeflare.triage.checks.compression import (
    fresh_copy,
    is_below_reference,
    output_scale,
    reference,
)
from edgeflare.triage.checks.device import device_answers, device_feeds
from edgeflare.triage.checks.exchange import (
    exchanged_classes,
    exchanged_inputs,
    exchanged_outputs,
)
from edgeflare.triage.checks.feeding import feeds, few_codes, input_range, same_tensor
from edgeflare.triage.checks.form import forms
from edgeflare.triage.checks.inputs import exif, ignored_inputs, resize_rule, statements
from edgeflare.triage.checks.kernels import kernels
from edgeflare.triage.checks.labels import labels
from edgeflare.triage.checks.layers import layers
from edgeflare.triage.checks.usable import (
    batch_rows,
    repeats,
    training_mode,
    unusable_values,
)
from edgeflare.triage.pair import Pair

Check = Callable[[Pair], Iterator[Cause]]
_FIRST: tuple[Check, ...] = (training_mode, unusable_values, device_answers)
_OF_SEEDS: tuple[Check, ...] = (
    *(batch_rows, ignored_inputs, resize_rule, exif),
    *(few_codes, statements, labels),
)
_CORRECTIONS: tuple[Check, ...] = (
    *(kernels, input_range),
    *(exchanged_inputs, exchanged_outputs, exchanged_classes),
    *(forms, same_tensor),
)
_SEARCHES: tuple[Check, ...] = (layers, reference)
_WITH_THE_FILE: tuple[Check, ...] = (
    *(training_mode, ignored_inputs, exif, few_codes, statements, kernels, input_range),
    *(exchanged_inputs, same_tensor, layers, reference, fresh_copy),
)
"""The checks that run the deployed file, or read it: not tried where that can't be done here."""
_ERRORS = (EdgeFlareError, ValueError, ArithmeticError, MemoryError)
_LIKE_COLOURS = "classes-exchanged"
"""With colours as classes another colour order looks like it."""
_BEHIND_SECOND = 2


def triage(
    pair: Pair,
    *,
    begin: Callable[[str], None] = lambda _: None,
    failed: Mapping[str, str] | None = None,
) -> Triage:
    """Return why a pair differs.

    `begin` is called with the name of each check before it; those that have `failed` are left out.
    """
    failed = dict(failed or {})

    def try_check(
        name: str, check: Callable[[], Iterable[Cause]], errors: tuple[type[Exception], ...]
    ) -> None:
        if name in failed:
            return
        begin(name)
        try:
            for cause in check():
                change = _plain(change_of(cause))
                pair.causes.append(replace(cause, evidence=_plain(cause.evidence), change=change))
        except errors as error:
            failed[name] = str(error)  # the other checks go on

    def run(checks: tuple[Check, ...]) -> None:
        for check in checks:
            if pair.is_recorded and check in _WITH_THE_FILE:
                continue
            try_check(check.__name__, partial(check, pair), _ERRORS)

    if pair.is_recorded:
        pair.ruled_out["file"] = {"name": pair.deployed.file.path.name, "why": pair.deployed.unread}
    run(_FIRST)
    if not pair.is_unusable:
        run((repeats,))
    if not pair.is_unusable and (pair.of_original is None or pair.of_deployed is None):
        pair.is_unusable = True
    if not pair.is_unusable:
        run(_OF_SEEDS)
        if pair.on_device is None and not pair.is_off:
            run((fresh_copy,))
        if pair.on_device is not None or pair.near_on_device is not None:
            run((device_feeds,))
        if pair.on_device is None and (pair.is_off or is_below_reference(pair)):
            run(_CORRECTIONS)
            if not pair.is_corrected:
                run(_SEARCHES)
                for name in plugins.names("cause"):  # a distribution's code: it may raise anything
                    try_check(name, partial(_of_others, name, pair), (Exception,))
            is_known = any(
                cause.strength >= CORRECTED and cause.what != _LIKE_COLOURS for cause in pair.causes
            )
            same_input = pair.sharp_layer is not None and pair.sharp_layer > _BEHIND_SECOND
            if not is_known and not same_input:
                run((feeds,))
        run((output_scale,))
    return _result(pair, failed)


def _of_others(name: str, pair: Pair) -> Iterable[Cause]:
    """Return what a distribution's check finds; in its own words."""
    return [
        replace(cause, text=cause.text or ", ".join(cause.names) or cause.what)
        for cause in plugins.load("cause", name)(pair)
    ]


def _result(pair: Pair, failed: Mapping[str, str]) -> Triage:
    order = ranked(pair.causes)
    agreement, same_class, agrees = None, None, False
    if not pair.is_unusable:
        answers = pair.on_device or pair.both
        reached = least_agreement(*answers)
        same_class = pair.share_of_one_class(*answers)
        agreement = reached if np.isfinite(reached) else None
        agrees = agreement is not None and not pair.are_off(*answers)
    if len(pair.places) < FEWEST_SEEDS:
        pair.ruled_out["seeds"] = {"compared": len(pair.places), "needed": FEWEST_SEEDS}
    strong = [cause for cause in order if not cause.is_remark and cause.strength >= COARSE]
    if agrees:  # what is weaker is a remark at most
        order = tuple(cause for cause in order if cause.strength >= REMARK or cause.is_remark)
    return Triage(
        pair.number_format,
        agreement,
        pair.expected,
        same_class,
        agrees and not strong,
        pair.is_unusable,
        tuple(cause for cause in order if not cause.is_remark),
        tuple(cause for cause in order if cause.is_remark),
        _plain(pair.ruled_out),
        failed,
        pair.original.calls + pair.deployed.calls,
    )


def _plain(value: Any) -> Any:
    """Return evidence as JSON has it, to nine digits, since others differ between processors.

    Numbers that aren't finite are None.
    """
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, float):
        return value
    return float(f"{value:.9g}") if np.isfinite(value) else None
