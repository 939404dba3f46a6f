"""Finished campaigns for reports, written into a store in seconds: on images, and on audio."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from edgeflare.answers.metrics import text_of, top_label
from edgeflare.answers.oracles import margins
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.devices.telemetry import DeviceMinute, Latencies
from edgeflare.metrics import l2, linf, snr_db
from edgeflare.store import OutcomeRecord, ReplayRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import (
    TRIGGERS,
    Decision,
    FrontPoint,
    Output,
    Sample,
    Scores,
    Status,
    Transcript,
)

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

Kind = Literal["keywords", "speech"]


class Found(NamedTuple):
    """A search of such a campaign: its seed's name, how it ended, and both samples."""

    name: str
    status: Status
    seed: Sample
    trigger: Sample


def chirp(number: int, seconds: float = 1.0, rate: int = RATE) -> Sample:
    """Return a tone that rises and falls with two harmonics and a little noise, float32 [samples] in [-1, 1]."""
    generator = np.random.default_rng(number)
    time = np.arange(round(seconds * rate)) / rate
    base = 180 + 40 * (number % 5) + 120 * np.sin(2 * np.pi * (1.5 + 0.3 * (number % 3)) * time)
    phase = 2 * np.pi * np.cumsum(base) / rate
    loud = 0.3 * np.sin(np.pi * time / seconds) ** 2
    tone = sum(np.sin(order * phase) / order for order in (1, 2, 3, 8))
    noise = 0.002 * generator.normal(size=time.size)
    return np.clip(loud * tone + noise, -1, 1).astype(np.float32)


def transcript(text: str, sure: float = 0.9) -> Transcript:
    """Return a text word by word, of which each has the probability `sure` and the best other one half the rest."""
    words = text.split(" ") if text else []
    pieces = tuple(word if not place else f" {word}" for place, word in enumerate(words))
    return Transcript(pieces, np.tile([sure, (1 - sure) / 2], (len(pieces), 1)))


def scores(label: int, sure: float) -> Output:
    """Return the probabilities of the keywords."""
    answer = np.full(len(KEYWORDS), (1 - sure) / (len(KEYWORDS) - 1))
    answer[label] = sure
    return answer


def audio_campaign(
    folder: Path, kind: Kind, triggers: int = 12, *, seconds: float = 1.0
) -> tuple[Path, Sequence[Found]]:
    """Write a campaign of one device; every fifth trigger is its seed, every fourth one longer than it.

    Returns its folder and its searches.
    """
    names = [HOSTILE_CLIP, *(f"clips/{number:03d}.wav" for number in range(1, triggers + 1))]
    found = [_search(name, number, seconds) for number, name in enumerate(names)]
    with Store.create(folder, _audio_config(), environment={"numpy": np.__version__}) as store:
        store.set_sample_rate(RATE)
        output = {"kind": "transcript" if kind == "speech" else "scores"}
        for_model = {"runtime": {"name": "onnx", "version": "1.20.0"}, "output": output}
        store.set_models(
            {"name": f"{kind}.onnx", "sha256": "ab" * 32, **for_model},
            {"name": f"{kind}-int8.onnx", "sha256": "cd" * 32, **for_model},
        )
        labels = [None if kind == "speech" else number % 4 for number in range(len(names))]
        store.add_seeds(map(SeedInput, names, (one.seed for one in found), labels))
        device = store.add_device({"board": "Raspberry Pi 4 Model B", "cpu": "0xd08"}, "pi-4")
        store.state.replicas = [""]
        store.complete_seeds((), [])
        answers = [_answers(kind, number) for number in range(len(found))]
        store.add_seed_answers(
            SeedAnswer(one.name, *both, Decision.DEVIATION)
            if one.status is Status.SEED_DEVIATES
            else SeedAnswer(one.name, both[0], both[0], Decision.AGREE)
            for one, both in zip(found, answers, strict=True)
        )
        for number, (one, both) in enumerate(zip(found, answers, strict=True)):
            store.add_outcome(_audio_outcome(store, one, both, number, device))
        store.state.finished = True
    return folder, found


def _search(name: str, number: int, seconds: float) -> Found:
    seed = chirp(number, seconds)
    generator = np.random.default_rng(1000 + number)
    loudness = 10 ** -(1.5 + number % 3 / 2)
    moved = np.roll(seed, 400) if number % 3 == 0 else seed
    trigger = (moved + loudness * generator.normal(size=seed.size)).astype(np.float32)
    trigger = np.clip(trigger, -1, 1)
    if number % 4 == 2:
        trigger = np.concatenate([trigger, trigger[: trigger.size // 5]])
    if number % 5 == 3:
        return Found(name, Status.SEED_DEVIATES, seed, seed)
    return Found(name, Status.FOUND, seed, trigger)


def _answers(kind: Kind, number: int) -> tuple[Output, Output]:
    sure = (0.6 + 0.03 * (number % 9), 0.5 + 0.04 * (number % 8))
    if kind == "keywords":
        label = number % 4
        return scores(label, sure[0]), scores((label + 1 + number % 2) % 4, sure[1])
    original, deployed = LINES[number % len(LINES)]
    return transcript(original, sure[0]), transcript(deployed, sure[1])


def _audio_outcome(
    store: Store, one: Found, both: tuple[Output, Output], number: int, device: str
) -> OutcomeRecord:
    itself = one.status is Status.SEED_DEVIATES
    distances: dict[str, Any] = {
        "l2": l2(one.seed, one.trigger),
        "linf": linf(one.seed, one.trigger),
    }
    sure = margins(*both)
    queries = 0 if itself else 3 + number
    return OutcomeRecord(
        one.name,
        one.status,
        number,
        seed_queries=1,
        search_queries=queries,
        confirmation_queries=2,
        seconds=0.2 * queries,
        device=device,
        device_name="pi-4",
        trigger=store.put_sample(one.trigger),
        original=both[0],
        deployed=both[1],
        original_label=top_label(both[0]),
        deployed_label=top_label(both[1]),
        original_margin=sure.original,
        deployed_margin=sure.deployed,
        snr_db=snr_db(one.seed, one.trigger),
        mutations=() if itself else ({"operator": "shift-time", "params": {"samples": 400}},),
        front=() if itself else (FrontPoint(queries, sure.smaller or 0.0, **distances),),
        confirmed=2,
        **({} if itself else distances),
    )


def texts(kind: Kind, number: int) -> tuple[str | None, str | None]:
    """Return what both models hear of the trigger of this number; None of keywords."""
    original, deployed = _answers(kind, number)
    return text_of(original), text_of(deployed)


def _audio_config() -> dict[str, Any]:
    config = CampaignConfig.model_validate(
        {
            "original": {"path": "speech.onnx"},
            "deployed": {"path": "speech-int8.onnx"},
            "seeds": {"path": "clips"},
            "search": {"seed": 0},
        }
    )
    return config.model_dump(mode="json")


DEMO = Path(__file__).parents[2] / "host" / "edgeflare" / "assets" / "demo"
DEVICES = ("pi-4", "pi-5")
PAIRS = ((4, 9), (3, 5), (7, 1), (9, 4), (8, 3), (0, 6), (4, 9), (4, 9))
"""What original and deployed model say of the triggers, by turns; the pair 4, 9 most often."""

HOSTILE = "<img src=x onerror=window.broken=1>'\"&</script><script>window.broken=1</script>.png"
"""The first seed's name: it would run as a script wherever a page took it for HTML."""

_BEGAN = datetime(2026, 11, 21, 2, 0, tzinfo=timezone.utc)
_OTHER_ENDS = (Status.UNSTABLE, Status.FAILED, Status.EXHAUSTED, Status.NONFINITE)


class Planned(NamedTuple):
    """A search that is to be in the campaign: its number, how it ended, and both models' labels."""

    number: int
    status: Status
    pair: tuple[int, int]

    @property
    def device(self) -> str:
        """The device that searched."""
        return DEVICES[self.number % len(DEVICES)]

    @property
    def shared(self) -> bool:
        """Whether its trigger triggers on the other device, too."""
        return self.number % 4 != 1

    @property
    def labelled(self) -> bool:
        """Whether both models gave a label to the input that it ended with."""
        return self.status in TRIGGERS or self.status is Status.UNSTABLE

    @property
    def scores(self) -> tuple[Scores, Scores]:
        """What both models answer to the input that it ended with."""
        first, second = self.pair
        confidences = 0.5 + 0.4 * np.random.default_rng(self.number).random(2)
        return _scores(first, confidences[0], second), _scores(second, confidences[1], first)


def plan(triggers: int) -> list[Planned]:
    """Return the searches of a campaign with so many triggers.

    Every seventh trigger is its seed itself. All that "pi-4" found triggers on both devices (the deployed file itself), every
    other one of "pi-5" on itself only (hardware). After each twenty triggers comes a search that ended otherwise.
    """
    ends: list[Status] = []
    for number in range(triggers):
        ends.append(Status.SEED_DEVIATES if number % 7 == 3 else Status.FOUND)
        if number % 20 == 19:
            ends.append(_OTHER_ENDS[number // 20 % len(_OTHER_ENDS)])
    return [
        Planned(number, status, PAIRS[number % len(PAIRS)]) for number, status in enumerate(ends)
    ]


def many_triggers(folder: Path, triggers: int, *, seed: int = 0) -> Path:
    """Write a campaign of two unlike devices, each of which searched from every seed; return its folder."""
    generator = np.random.default_rng(seed)
    with np.load(DEMO / "seeds.npz") as archive:
        digits, classes = archive["images"][..., None], archive["labels"]
    planned = plan(triggers)
    count = -(-len(planned) // len(DEVICES))
    names = [HOSTILE, *(f"digits/{number:05d}.png" for number in range(1, count))]
    samples = [_noisy(digits[number % len(digits)], 6.0, generator) for number in range(count)]
    labels = [int(classes[number % len(classes)]) for number in range(count)]
    with Store.create(folder, _config(seed), environment={"numpy": np.__version__}) as store:
        store.add_seeds(map(SeedInput, names, samples, labels))
        runtime = {"name": "onnx", "version": "1.20.0"}
        store.set_models(
            {"name": "original.onnx", "sha256": "ab" * 32, "runtime": runtime},
            {"name": "deployed.tflite", "sha256": "cd" * 32, "runtime": runtime},
        )
        digests = {name: store.add_device(_fingerprint(name), name) for name in DEVICES}
        store.state.replicas = list(DEVICES)
        store.state.fingerprints = digests
        store.complete_seeds((), ["These devices are made up: nothing was ever asked of them."])
        for name in DEVICES:
            store.add_telemetry(_minutes(name))
            answers = [
                SeedAnswer(one, _scores(label, 0.9), _scores(label, 0.8), Decision.AGREE)
                for one, label in zip(names, labels, strict=True)
            ]
            for one in planned:
                if one.device == name and one.status is Status.SEED_DEVIATES:
                    place = one.number // len(DEVICES)
                    answers[place] = SeedAnswer(names[place], *one.scores, Decision.DEVIATION)
            store.add_seed_answers(answers, name)
        for one in planned:
            place = one.number // len(DEVICES)
            outcome = _outcome(one, names[place], samples[place], digests, store, generator)
            store.add_outcome(outcome)
            if one.status in TRIGGERS:
                store.add_replay(_replay(one, outcome))
        store.state.finished = True
    return folder


def _config(seed: int) -> dict[str, Any]:
    config = CampaignConfig.model_validate(
        {
            "original": {"path": DEMO / "original.onnx"},
            "deployed": {"path": DEMO / "deployed.tflite"},
            "seeds": {"path": DEMO / "seeds.npz"},
            "devices": DEVICES,
            "fleet": {"mode": "replicate"},
            "search": {"seed": seed},
        }
    )
    return config.model_dump(mode="json")


def _fingerprint(name: str) -> dict[str, Any]:
    """Return the fingerprints of two boards that differ in their hardware alone."""
    model, core = {"pi-4": ("4 Model B", "0xd08"), "pi-5": ("5 Model B", "0xd0b")}[name]
    return {
        "board": f"Raspberry Pi {model}",
        "cpu": core,
        "arch": "aarch64",
        "os": "Debian GNU/Linux 12 (bookworm)",
        "python": "3.11.2",
        "numpy": "2.4.6",
        "runtime": {"name": "tflite", "version": "2.3.0", "delegate": "XNNPACK", "threads": 1},
    }


def _noisy(sample: Sample, sigma: float, generator: np.random.Generator) -> Sample:
    noise = generator.normal(0.0, sigma, sample.shape)
    return np.clip(sample + noise, 0, 255).round().astype(np.uint8)


def _scores(label: int, confidence: float, second: int | None = None) -> Scores:
    """Return ten probabilities: `confidence` for the label, half of what is left for the second."""
    left = 1.0 - confidence
    scores = np.full(10, left / 9 if second is None else left / 16)
    if second is not None:
        scores[second] = left / 2
    scores[label] = confidence
    return scores


def _outcome(
    one: Planned,
    name: str,
    sample: Sample,
    digests: dict[str, str],
    store: Store,
    generator: np.random.Generator,
) -> OutcomeRecord:
    itself = one.status is Status.SEED_DEVIATES
    queries = 0 if itself else int(generator.geometric(0.3))
    values: dict[str, Any] = {
        "seed_queries": 1,
        "search_queries": queries,
        "confirmation_queries": 2,
        "round_trips": queries,
        "seconds": float(generator.gamma(2.0, 0.02)) if queries else 0.0,
        "device_seconds": 0.002 * queries,
        "device": digests[one.device],
        "device_name": one.device,
        "replica": one.device,
        "finished_at": _BEGAN + timedelta(seconds=2 * one.number),
    }
    if one.status is Status.EXHAUSTED:
        return OutcomeRecord(name, one.status, one.number, **values)
    shown = sample if itself else _noisy(sample, float(generator.uniform(4, 40)), generator)
    values["trigger"] = store.put_sample(shown)
    if one.status is Status.FAILED:
        detail = "the agent died three times: Segmentation fault"
        return OutcomeRecord(name, one.status, one.number, detail=detail, **values)
    difference = shown.astype(float) - sample
    l2, linf = float(np.linalg.norm(difference / 255)), int(np.abs(difference).max())
    original, deployed = one.scores
    if one.status is Status.NONFINITE:
        deployed[3] = np.nan
        return OutcomeRecord(
            name, one.status, one.number, original=original, deployed=deployed, **values
        )
    margins = [float(np.diff(np.sort(scores)[-2:])[0]) for scores in (original, deployed)]
    return OutcomeRecord(
        name,
        one.status,
        one.number,
        original=original,
        deployed=deployed,
        original_label=one.pair[0],
        deployed_label=one.pair[1],
        original_margin=margins[0],
        deployed_margin=margins[1],
        l2=l2,
        linf=linf,
        front=[FrontPoint(max(queries, 1), min(margins), l2, linf)],
        confirmed=0 if one.status is Status.UNSTABLE else 2,
        **values,
    )


def _replay(one: Planned, outcome: OutcomeRecord) -> ReplayRecord:
    """Return what the other device answers to a trigger."""
    assert outcome.original is not None
    assert outcome.deployed is not None
    assert outcome.trigger is not None
    other = next(name for name in DEVICES if name != one.device)
    scores = outcome.deployed if one.shared else outcome.original
    decision = Decision.DEVIATION if one.shared else Decision.AGREE
    label = int(scores.argmax())
    return ReplayRecord(
        outcome.seed_id, one.device, other, outcome.trigger, scores, label, decision
    )


def _minutes(name: str) -> list[DeviceMinute]:
    """Return half an hour of a board that warms up; "pi-5" is slowed down in the end."""
    hot = name == "pi-5"
    latencies = Latencies()
    latencies.add([0.002] * 590 + [0.004] * 10)
    return [
        DeviceMinute(
            name,
            _BEGAN + timedelta(minutes=number),
            queries=latencies.count,
            latency_median_s=0.002,
            latency_p99_s=0.004,
            latency_max_s=0.004,
            latencies=latencies.buckets,
            rss_bytes=90_000_000,
            temperature_mean_c=50.0 + number,
            temperature_max_c=52.0 + number + 5 * hot,
            frequency_least_mhz=1500.0 if hot and number > 25 else 1800.0,
            readings=12,
            throttled_readings=6 if hot and number > 25 else 0,
            throttle_reasons=("hot",) if hot and number > 25 else (),
        )
        for number in range(30)
    ]
