"""Devices of a running campaign, drawn at random, seeded."""

import random

from edgeflare.devices import DeviceStatus, State

PI = DeviceStatus("pi-4", State.UP, "", 12000, 412.3, 15, 16, 0.97, 0.0381, 0.0522, 61.2, False, 0)
HOT = DeviceStatus(
    "ssh://user@192.168.1.77:2222",
    State.UP,
    "",
    99000,
    1412.0,
    120,
    128,
    0.5,
    0.0011,
    0.0922,
    81.2,
    True,
    3,
)
AWAY = DeviceStatus("jetson", State.AWAY, "no answer for 12 s: No route to [host] jetson.local", 5)
RETIRED = DeviceStatus("pi-5", State.RETIRED, "came back as another device: its board differs", 5)
SILENT = DeviceStatus("local", State.UP, "", 1, 3.25, 1, 2)
"""An "up" device that tells nothing of itself."""


def drawn(count: int, seed: int) -> tuple[DeviceStatus, ...]:
    """Return so many devices in all sorts of states."""
    rng = random.Random(seed)

    def maybe(value: float) -> float | None:
        return None if rng.random() < 0.2 else value

    return tuple(
        DeviceStatus(
            name=rng.choice(["pi-{}", "board {} of the big rack", "ssh://u@10.0.0.{}:22"]).format(
                n
            ),
            state=rng.choices(list(State), [8, 1, 1])[0],
            detail=rng.choice(["", "no answer", "no [bold]answer[/] " * 9]),
            queries=rng.randrange(10**7),
            queries_per_s=rng.choice([0.0, rng.random(), 10 ** (5 * rng.random())]),
            in_flight=rng.randrange(200),
            depth=rng.randrange(200),
            busy=maybe(rng.random()),
            latency_median_s=maybe(10 ** (-4 + 5 * rng.random())),
            latency_p99_s=maybe(10 ** (-3 + 5 * rng.random())),
            temperature_c=maybe(100 * rng.random()),
            throttled=rng.choice([None, False, True]),
            reconnects=rng.choice([0, 0, rng.randrange(200)]),
        )
        for n in range(count)
    )
