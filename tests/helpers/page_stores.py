"""Campaigns with many findings, for pages as people open them: on images by two devices, and on audio."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from example_answers import Both, chirp, sure_of, transcript
from stores import answered, ended, store_of

from edgeflare.answers.metrics import text_of
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.devices.telemetry import DeviceMinute, Latencies
from edgeflare.metrics import l2, linf, snr_db
from edgeflare.store import ReplayRecord, SeedAnswer, Store
from edgeflare.types import TRIGGERS, Decision, FrontPoint, Sample, Status

DEVICES = ("pi-4", "pi-5")
HOSTILE = "<img src=x onerror=window.broken=1>'\"&</script><script>window.broken=1</script>.png"
"""The first seed's name: it would run as a script wherever a page took it for HTML."""
_BEGAN = datetime(2026, 11, 21, 2, 0, tzinfo=timezone.utc)
_DEMO = Path(__file__).parents[2] / "host" / "edgeflare" / "assets" / "demo"
_PAIRS = ((4, 9), (3, 5), (7, 1), (9, 4), (8, 3), (0, 6), (4, 9), (4, 9))
"""What original and deployed model say of the triggers, by turns; the pair 4, 9 most often."""


class Planned(NamedTuple):
    """A search that is to be in the campaign of many triggers, and both models' labels."""

    number: int
    status: Status
    pair: tuple[int, int]

    @property
    def device(self) -> str:
        """The device that searched."""
        return DEVICES[self.number % 2]

    @property
    def shared(self) -> bool:
        """Whether its trigger triggers on the other device, too."""
        return self.number % 4 != 1

    @property
    def labelled(self) -> bool:
        """Whether both models gave a label to the input that it ended with."""
        return self.status in TRIGGERS or self.status is Status.UNSTABLE

    @property
    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """What both models answer to the input that it ended with."""
        first, second = self.pair
        sure = 0.5 + 0.4 * np.random.default_rng(self.number).random(2)
        return sure_of(first, sure[0], second=second), sure_of(second, sure[1], second=first)


def plan(triggers: int) -> list[Planned]:
    """Return the searches of a campaign with so many triggers.

    Every seventh trigger is its seed itself. All that "pi-4" found triggers on both devices (the deployed file itself),
    every other one of "pi-5" on itself only (hardware). After each twenty triggers comes a search that ended otherwise.
    """
    others = (Status.UNSTABLE, Status.FAILED, Status.EXHAUSTED, Status.NONFINITE)
    ends: list[Status] = []
    for number in range(triggers):
        ends.append(Status.SEED_DEVIATES if number % 7 == 3 else Status.FOUND)
        if number % 20 == 19:
            ends.append(others[number // 20 % 4])
    return [Planned(number, status, _PAIRS[number % 8]) for number, status in enumerate(ends)]


def many_triggers(folder: Path, triggers: int, *, seed: int = 0) -> Path:
    """Write a campaign of two unlike devices, each of which searched from every seed; return its folder."""
    generator = np.random.default_rng(seed)
    with np.load(_DEMO / "seeds.npz") as archive:
        digits, classes = archive["images"][..., None], archive["labels"]

    def noisy(sample: Sample, sigma: float) -> Sample:
        return np.clip(sample + generator.normal(0, sigma, sample.shape), 0, 255).astype(np.uint8)

    planned = plan(triggers)
    count = -(-len(planned) // 2)
    samples = [noisy(digits[number % len(digits)], 6.0) for number in range(count)]
    labels = [int(classes[number % len(classes)]) for number in range(count)]
    config = CampaignConfig.model_validate(
        {
            "original": {"path": _DEMO / "original.onnx"},
            "deployed": {"path": _DEMO / "deployed.tflite"},
            "seeds": {"path": _DEMO / "seeds.npz"},
            "devices": DEVICES,
            "fleet": {"mode": "replicate"},
            "search": {"seed": seed},
        }
    )
    with store_of(
        folder,
        seeds=[HOSTILE, *(f"digits/{number:05d}.png" for number in range(1, count))],
        sample=samples.__getitem__,
        label=labels.__getitem__,
        replicas=DEVICES,
        devices={name: _fingerprint(name) for name in DEVICES},
        config=config.model_dump(mode="json"),
        models=({"sha256": "ab" * 32}, {"name": "deployed.tflite", "sha256": "cd" * 32}),
    ) as store:
        names = [one.id for one in store.seeds()]
        store.state.fingerprints = {one.name: one.digest for one in store.devices()}
        store.complete_seeds((), ["These devices are made up: nothing was ever asked of them."])
        for name in DEVICES:
            store.add_telemetry(_minutes(name))
            answers = {
                one: SeedAnswer(one, sure_of(label, 0.9), sure_of(label, 0.8), Decision.AGREE)
                for one, label in zip(names, labels, strict=True)
            }
            for one in planned:
                if one.device == name and one.status is Status.SEED_DEVIATES:
                    itself = names[one.number // 2]
                    answers[itself] = SeedAnswer(itself, *one.scores, Decision.DEVIATION)
            store.add_seed_answers(answers.values(), name)
        for one in planned:
            sample = samples[one.number // 2]
            itself = one.status is Status.SEED_DEVIATES
            shown = sample if itself else noisy(sample, float(generator.uniform(4, 40)))
            _search(
                store, one, names[one.number // 2], sample, shown, int(generator.geometric(0.3))
            )
        store.state.finished = True
    return folder


def _search(
    store: Store, one: Planned, name: str, sample: Sample, shown: Sample, queries: int
) -> None:
    queries = 0 if one.status is Status.SEED_DEVIATES else queries
    values: dict[str, Any] = {
        "seed_queries": 1,
        "search_queries": queries,
        "confirmation_queries": 2,
        "round_trips": queries,
        "seconds": 0.04 * queries,
        "device_seconds": 0.002 * queries,
        "replica": one.device,
        "finished_at": _BEGAN + timedelta(seconds=2 * one.number),
    }
    original, deployed = one.scores
    if one.labelled:
        far = {"l2": l2(sample, shown), "linf": linf(sample, shown)}
        values |= answered(original, deployed) | far
        least = min(values["original_margin"], values["deployed_margin"])
        values["front"] = [FrontPoint(max(queries, 1), least, *far.values())]
        values["confirmed"] = 0 if one.status is Status.UNSTABLE else 2
    elif one.status is Status.FAILED:
        values["detail"] = "the agent died three times: Segmentation fault"
    elif one.status is Status.NONFINITE:
        deployed[3] = np.nan
        values |= {"original": original, "deployed": deployed}
    trigger = None if one.status is Status.EXHAUSTED else shown
    made = ended(store, name, one.status, trigger=trigger, device=one.device, **values)
    if one.status in TRIGGERS and made.trigger is not None:
        other = DEVICES[one.device == DEVICES[0]]
        scores = deployed if one.shared else original
        decision = Decision.DEVIATION if one.shared else Decision.AGREE
        store.add_replay(
            ReplayRecord(
                name, one.device, other, made.trigger, scores, int(scores.argmax()), decision
            )
        )


def _fingerprint(name: str) -> dict[str, Any]:
    """Return the fingerprints of two boards that differ in their hardware alone."""
    model, core = {"pi-4": ("4 Model B", "0xd08"), "pi-5": ("5 Model B", "0xd0b")}[name]
    return {
        "board": f"Raspberry Pi {model}",
        "cpu": core,
        "arch": "aarch64",
        "os": "Debian GNU/Linux 12 (bookworm)",
        "runtime": {"name": "tflite", "version": "2.3.0", "delegate": "XNNPACK", "threads": 1},
    }


def _minutes(name: str) -> list[DeviceMinute]:
    """Return half an hour of a board that warms up; "pi-5" is slowed down in the end."""
    latencies = Latencies()
    latencies.add([0.002] * 590 + [0.004] * 10)

    def minute(number: int) -> DeviceMinute:
        slow = name == "pi-5" and number > 25
        return DeviceMinute(
            name,
            _BEGAN + timedelta(minutes=number),
            queries=latencies.count,
            latency_median_s=0.002,
            latency_p99_s=0.004,
            latency_max_s=0.004,
            latencies=latencies.buckets,
            rss_bytes=90_000_000,
            temperature_mean_c=50.0 + number,
            temperature_max_c=52.0 + number + 5 * (name == "pi-5"),
            frequency_least_mhz=1500.0 if slow else 1800.0,
            readings=12,
            throttled_readings=6 * slow,
            throttle_reasons=("hot",) if slow else (),
        )

    return [minute(number) for number in range(30)]


RATE = 16_000
KEYWORDS = ("yes", "no", "up", "down")
LINES = (
    ("He has no money.", "He has go money."),
    ("Turn the lights off in the kitchen, please.", "Turn the light off in a kitchen please."),
    ("No, the door is open.", "Go, the door is opened."),
    ("It is a cold night", "It is cold tonight"),
    ("Don't answer the phone!", ""),
    ("The last bus leaves at ten.", "The last bus leaves at ten men."),
)
"""What the original and the deployed model hear of the triggers, by turns."""
HOSTILE_CLIP = "<img src=x onerror=window.broken=1>'\"&.wav"
"""The first seed's name."""


class Found(NamedTuple):
    """A search of a campaign on audio: its seed's name, how it ended, and both samples."""

    name: str
    status: Status
    seed: Sample
    trigger: Sample


def audio_campaign(
    folder: Path, kind: Literal["keywords", "speech"], triggers: int = 12, *, seconds: float = 1.0
) -> tuple[Path, Sequence[Found]]:
    """Write a campaign of one device; every fifth trigger is its seed, every fourth one longer than it.

    Returns its folder and its searches.
    """
    names = [HOSTILE_CLIP, *(f"clips/{number:03d}.wav" for number in range(1, triggers + 1))]
    found = [_heard(name, number, seconds) for number, name in enumerate(names)]
    files = {name: {"path": f"{name}.onnx"} for name in ("original", "deployed", "seeds")}
    output = {"kind": "transcript" if kind == "speech" else "scores"}

    def seed_answers(number: int) -> Sequence[Any]:
        original, deployed = _answers(kind, number)
        if found[number].status is Status.SEED_DEVIATES:
            return original, deployed, Decision.DEVIATION
        return original, original

    with store_of(
        folder,
        seeds=names,
        sample=lambda number: found[number].seed,
        label=lambda number: None if kind == "speech" else number % 4,
        answers=seed_answers,
        devices={"pi-4": {"board": "Raspberry Pi 4 Model B", "cpu": "0xd08"}},
        config=CampaignConfig.model_validate({**files, "search": {"seed": 0}}).model_dump(
            mode="json"
        ),
        models=({"sha256": "ab" * 32, "output": output}, {"sha256": "cd" * 32, "output": output}),
        rate=RATE,
    ) as store:
        store.complete_seeds((), [])
        for number, one in enumerate(found):
            values: dict[str, Any] = answered(*_answers(kind, number))
            queries = 0 if one.status is Status.SEED_DEVIATES else 3 + number
            if queries:
                far = {"l2": l2(one.seed, one.trigger), "linf": linf(one.seed, one.trigger)}
                least = min(values["original_margin"] or 0.0, values["deployed_margin"] or 0.0)
                values |= {**far, "front": (FrontPoint(queries, least, **far),)}
                values["mutations"] = ({"operator": "shift-time", "params": {"samples": 400}},)
            ended(
                *(store, one.name, one.status),
                trigger=one.trigger,
                device="pi-4",
                chain_seed=number,
                seed_queries=1,
                search_queries=queries,
                confirmation_queries=2,
                seconds=0.2 * queries,
                snr_db=snr_db(one.seed, one.trigger),
                confirmed=2,
                **values,
            )
        store.state.finished = True
    return folder, found


def _heard(name: str, number: int, seconds: float) -> Found:
    seed = chirp(number, seconds)
    if number % 5 == 3:
        return Found(name, Status.SEED_DEVIATES, seed, seed)
    loudness = 10 ** -(1.5 + number % 3 / 2)
    noise = np.random.default_rng(1000 + number).normal(size=seed.size)
    trigger = np.roll(seed, 400) if number % 3 == 0 else seed
    trigger = np.clip((trigger + loudness * noise).astype(np.float32), -1, 1)
    if number % 4 == 2:
        trigger = np.concatenate([trigger, trigger[: trigger.size // 5]])
    return Found(name, Status.FOUND, seed, trigger)


def _answers(kind: str, number: int) -> Both:
    sure = (0.6 + 0.03 * (number % 9), 0.5 + 0.04 * (number % 8))
    if kind == "keywords":
        label = number % 4
        other = (label + 1 + number % 2) % 4
        return sure_of(label, sure[0], classes=4), sure_of(other, sure[1], classes=4)
    original, deployed = LINES[number % len(LINES)]
    return transcript(original, sure[0]), transcript(deployed, sure[1])


def texts(kind: str, number: int) -> tuple[str | None, str | None]:
    """Return what both models hear of the trigger of this number; None of keywords."""
    original, deployed = _answers(kind, number)
    return text_of(original), text_of(deployed)
