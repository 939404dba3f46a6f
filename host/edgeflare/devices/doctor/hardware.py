"""Disk, memory, clock, processor, governor and heat."""

from collections.abc import Iterator
from datetime import datetime, timezone

from edgeflare._internal.text import duration
from edgeflare.devices.cpu_names import flag_names, model_name
from edgeflare.devices.doctor.facts import Facts, SystemReading
from edgeflare.devices.doctor.result import CheckLine, bad, good, note
from edgeflare.devices.provisioning.probe import Probe

_LITTLE_DISK, _SOME_DISK = 16_000_000, 200_000_000
_FEW_FILES = 16
_LITTLE_MEMORY = 100_000_000
_WRONG_CLOCK_S = 60.0
_HOT_C = 80.0
_NOT_REPORTED = "the system doesn't tell"
_BITS = ("under-voltage", "frequency capped", "throttled", "soft temperature limit")
"""A Raspberry Pi's bits 0-3 for now; bits 16-19 are the same since boot."""
_UNDER_VOLTAGE = 0x1_0001


def disk(probed: Probe, facts: Facts, model_bytes: int) -> CheckLine:
    """Check the space for the agent, a model of this size and what else a run writes."""
    free, files_free = facts.disk.free, facts.disk.files_free
    if free is None:
        return good("disk", f"{_NOT_REPORTED} how much is free")
    whole = f" of {_size(facts.disk.total)}" if facts.disk.total else ""
    detail = f"{_size(free)} free{whole} at {probed.root}"
    if free < _LITTLE_DISK + model_bytes:
        return bad(
            "disk",
            f"{detail}, nearly full" if free else f"{detail}, full",
            _how_to_make_space(probed),
        )
    if files_free is not None and files_free < _FEW_FILES:
        return bad(
            "disk", f"{detail}, but no more files can be made there", _how_to_make_space(probed)
        )
    return (
        note("disk", detail, _how_to_make_space(probed))
        if free < _SOME_DISK
        else good("disk", detail)
    )


def machine(reading: SystemReading) -> Iterator[CheckLine]:
    """Yield the lines of memory, clock, cpu, governor and temperature."""
    facts = reading.facts
    yield _memory(facts)
    yield _clock(reading)
    yield _cpu(facts)
    yield _governor(facts)
    yield _temperature(facts)


def _how_to_make_space(probed: Probe) -> str:
    """Return advice on freeing space, with what a prune would free."""
    held = sum(size for files in probed.files.values() for size in files.values())
    ways = ["free some there (`du -xk ~ | sort -n | tail` shows what takes it)"]
    if held:
        ways.append(f"`edgeflare devices prune {probed.name} --all` frees {_size(held)}")
    ways.append("or give a folder on another disk as `cache` in the device's inventory entry")
    return "; ".join(ways)


def _memory(facts: Facts) -> CheckLine:
    available, total = facts.memory.available, facts.memory.total
    if available is None:
        return good("memory", _NOT_REPORTED)
    detail = f"{_size(available)} available" + (f" of {_size(total)}" if total else "")
    if available < _LITTLE_MEMORY:
        advice = "end programs there (`ps aux --sort=-rss | head` shows the largest) or add swap"
        return note("memory", f"{detail}: a model may not fit", advice)
    return good("memory", detail)


def _clock(reading: SystemReading) -> CheckLine:
    ahead, within = reading.clock_ahead_s, reading.clock_within_s
    if abs(ahead) <= within:
        return good("clock", f"agrees with this machine's to within {duration(within)}")
    side = "ahead of" if ahead > 0 else "behind"
    detail = f"{duration(abs(ahead))} {side} this machine's, to within {duration(within)}"
    if abs(ahead) - within <= _WRONG_CLOCK_S:
        return good("clock", detail)
    return note(
        "clock",
        f"{detail}: TLS (pip) and the dates of files go wrong",
        "run 'sudo timedatectl set-ntp true' there, or where it has no network: "
        f"sudo date -u -s '{datetime.now(timezone.utc):%F %T}'",
    )


def _cpu(facts: Facts) -> CheckLine:
    cpu = facts.cpu
    name = model_name(cpu.model, cpu.implementer, cpu.part)
    words = [facts.board] if facts.board else []
    words.append(f"{name or 'unknown processor'} ({cpu.arch})")
    if cpu.cores:
        words.append(f"{cpu.cores} core{'s' if cpu.cores > 1 else ''}")
    words.append(flag_names(cpu.arch, cpu.flags))
    return good("cpu", ", ".join(words))


def _governor(facts: Facts) -> CheckLine:
    if not facts.governors:
        return good(
            "governor", f"{_NOT_REPORTED} (no cpufreq): the clock is fixed, or set by the host"
        )
    detail = ", ".join(facts.governors)
    if facts.governors == ("performance",):
        return good("governor", detail)
    return note(
        "governor",
        f"{detail}: latencies depend on the load",
        "for steady ones, until the next boot: "
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )


def _temperature(facts: Facts) -> CheckLine:
    readings = _sensor(facts) + _firmware(facts)
    if facts.coolers:
        readings.append(f"slowed down against heat by {', '.join(facts.coolers)}")
    if not readings:
        return good("temperature", _NOT_REPORTED)
    advice = []
    bits = facts.firmware or 0
    if bits & _UNDER_VOLTAGE:
        advice.append("give it a stronger power supply and a short cable")
    if bits & ~_UNDER_VOLTAGE or facts.coolers or (facts.hottest and facts.hottest[0] >= _HOT_C):
        advice.append("give it a fan or heat sink, and let it cool down")
    detail = "; ".join(readings)
    if not advice:
        return good("temperature", detail)
    return note("temperature", f"{detail}: it slows down", " and ".join(advice))


def _sensor(facts: Facts) -> list[str]:
    if facts.hottest is None:
        return []
    degrees, sensor = facts.hottest
    return [f"{degrees:.1f} C" + (f" ({sensor})" if sensor else "")]


def _firmware(facts: Facts) -> list[str]:
    """Describe a Raspberry Pi's throttling bits."""
    if facts.firmware is None:
        return []
    states = []
    for when, shift in (("now", 0), ("since boot", 16)):
        words = [word for bit, word in enumerate(_BITS) if facts.firmware >> (bit + shift) & 1]
        states += [f"{when}: {', '.join(words)}"] if words else []
    return states or ["not throttled since boot"]


def _size(count: int | None) -> str:
    count = count or 0
    if count >= 10e9:
        return f"{count / 1e9:.0f} GB"
    return f"{count / 1e6:.0f} MB" if count >= 10e6 or not count else f"{count / 1e6:.1f} MB"
