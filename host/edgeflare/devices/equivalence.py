"""Whether devices are equivalent: one may answer in place of another."""

from collections.abc import Sequence
from concurrent.futures import Future, wait
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.fingerprints import differences
from edgeflare.devices.session.replies import Reply
from edgeflare.errors import DeviceAwayError, UsageError
from edgeflare.types import Sample
from edgeflare_agent.decoding import Decoded, RawOutput

_SHOWN = 3
_PATIENCE_S = 600.0
_ADVICE = (
    "devices that share the seeds must answer alike: take devices of one kind, software and "
    "options, let each search for itself with `--fleet replicate`, or accept the difference with "
    "`--allow-mixed`"
)


Bits: TypeAlias = list[list[tuple[object, ...]]]
"""What a device answers to some probes: equal for equal outputs only."""


class Described(Protocol):
    """A device of which a name and a fingerprint are known."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def fingerprint(self) -> dict[str, Any]: ...  # noqa: D102


class Answering(Described, Protocol):
    """A device with the deployed model, such as a ReconnectingSession or a DeviceSession."""

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply[RawOutput]]":
        """Queue a request without waiting for anything."""
        ...


def check_equivalent(
    devices: Sequence[Answering],
    probes: Sequence[Sample],
    *,
    timeout_s: float = _PATIENCE_S,
) -> None:
    """Check that all devices have one fingerprint and give bit-equal outputs on the probes.

    `probes`: raw samples, each asked of every device by itself, all at the same time. Raises
    UsageError that names the devices and what differs, DeviceAwayError where a device hasn't
    answered all within `timeout_s`, and the errors of the devices.
    """
    if len(devices) < 2:
        return
    check_same_fingerprints(devices)
    check_equal_answers(devices, probe_answers(devices, probes, timeout_s=timeout_s))


def check_same_fingerprints(devices: Sequence[Described]) -> None:
    """Raise UsageError where the fingerprint of a device is not the first one's."""
    first = devices[0]
    for other in devices[1:]:
        found = differences(first.fingerprint, other.fingerprint)
        if found:
            raise UsageError(
                f"{first.name} and {other.name} are not alike: {_described(found, first, other)}; "
                f"{_ADVICE}"
            )


def probe_answers(
    devices: Sequence[Answering], probes: Sequence[Sample], *, timeout_s: float = _PATIENCE_S
) -> list[Bits]:
    """Return what each device answers to the probes, for `check_equal_answers`.

    Raises DeviceAwayError where one hasn't answered within `timeout_s`, and the devices' errors.
    """
    pending = [[device.submit([probe]) for probe in probes] for device in devices]
    late = wait([future for of_one in pending for future in of_one], timeout_s).not_done
    for device, of_one in zip(devices, pending, strict=True):
        if not late.isdisjoint(of_one):
            raise DeviceAwayError(
                f"{device.name} did not answer {len(probes)} probes within {timeout_s:g} s; is it "
                "on and reached? Try `edgeflare devices check`"
            )
    return [[_bits(future.result()) for future in of_one] for of_one in pending]


def check_equal_answers(devices: Sequence[Described], answers: Sequence[Bits]) -> None:
    """Raise UsageError where the answers of a device are not the first one's, bit for bit."""
    first = devices[0]
    for other, its in zip(devices[1:], answers[1:], strict=True):
        unequal = [n for n, (a, b) in enumerate(zip(answers[0], its, strict=True)) if a != b]
        if unequal:
            raise UsageError(
                f"{first.name} and {other.name} are not alike: their outputs differ on "
                f"{len(unequal)} of {len(its)} probes, first on probe {unequal[0]}; {_ADVICE}"
            )


def _described(found: Sequence[tuple[str, Any, Any]], first: Described, other: Described) -> str:
    shown = [
        f"{field} is {one!r} on {first.name} and {two!r} on {other.name}"
        for field, one, two in found[:_SHOWN]
    ]
    rest = [field for field, _, _ in found[_SHOWN:]]
    return "; ".join(shown) + (f"; and {', '.join(rest)}" if rest else "")


def _bits(reply: Reply[RawOutput]) -> list[tuple[object, ...]]:
    """Return what is equal for equal outputs only: of a transcript its pieces and score bits."""
    found: list[tuple[object, ...]] = []
    pieces: tuple[str, ...]
    arrays: tuple[NDArray[Any], ...]
    for output in reply.outputs:
        if isinstance(output, Decoded):
            pieces, arrays = output.pieces, (output.scores,)
        elif isinstance(output, np.ndarray):
            pieces, arrays = (), (output,)
        else:
            pieces, arrays = (), output
        found.append((pieces, *((str(one.dtype), one.shape, one.tobytes()) for one in arrays)))
    return found
