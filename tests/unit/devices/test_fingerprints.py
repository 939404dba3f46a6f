"""The fingerprint holds what changes results, and nothing else."""

import pytest
from fake_sessions import FINGERPRINT

from edgeflare.devices import fingerprint, fingerprint_digest
from edgeflare.devices.fingerprints import check_unchanged
from edgeflare.errors import DeviceChangedError

DEVICE = {
    "board": "Raspberry Pi 4 Model B", "soc": "bcm2711", "cpu": "0xd08",
    "cpu_flags": ["asimd", "fp"], "arch": "aarch64", "kernel": "Linux 6.1", "os": "Debian 12",
    "python": "3.11.2", "numpy": "1.26.4", "hostname": "pi4", "memory_bytes": 4_000_000_000,
}  # fmt: skip
RUNTIME = {"name": "tflite", "version": "2.14.0", "delegate": "XNNPACK", "threads": 1}


def test_name_and_memory_are_no_part_of_it() -> None:
    other = {**DEVICE, "hostname": "pi5", "memory_bytes": 1}
    assert fingerprint(DEVICE, RUNTIME) == fingerprint(other, RUNTIME)


@pytest.mark.parametrize(
    "field", ["board", "cpu", "cpu_flags", "arch", "kernel", "numpy", "python"]
)
def test_each_field_of_the_device_changes_the_digest(field: str) -> None:
    changed = {**DEVICE, field: "another"}
    assert fingerprint_digest(fingerprint(changed, RUNTIME)) != fingerprint_digest(
        fingerprint(DEVICE, RUNTIME)
    )


def test_digest_does_not_depend_on_the_order_of_keys() -> None:
    turned = dict(reversed(DEVICE.items()))
    first = fingerprint(DEVICE, RUNTIME)
    assert fingerprint_digest(first) == fingerprint_digest(
        fingerprint(turned, dict(reversed(RUNTIME.items())))
    )
    assert fingerprint_digest(first) != fingerprint_digest(
        fingerprint(DEVICE, {**RUNTIME, "delegate": None})
    )


def test_what_the_system_does_not_tell_is_none() -> None:
    assert fingerprint({}, RUNTIME)["board"] is None


def test_device_that_came_back_changed_is_reported_by_its_fields() -> None:
    check_unchanged("pi4", FINGERPRINT, dict(FINGERPRINT))
    with pytest.raises(DeviceChangedError, match=r"was '6\.1'"):
        check_unchanged("pi4", FINGERPRINT, {**FINGERPRINT, "kernel": "6.6"})
