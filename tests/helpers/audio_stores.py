"""Finished campaigns on audio, written into a store in seconds: a keyword spotter's, and a speech recogniser's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from edgeflare.answers import text_of, top_label
from edgeflare.campaign.config import CampaignConfig
from edgeflare.distances import l2, linf, snr_db
from edgeflare.oracles import margins
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, FrontPoint, Output, Sample, Status, Transcript

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
HOSTILE = "<img src=x onerror=window.broken=1>'\"&.wav"
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
    names = [HOSTILE, *(f"clips/{number:03d}.wav" for number in range(1, triggers + 1))]
    found = [_search(name, number, seconds) for number, name in enumerate(names)]
    with Store.create(folder, _config(), environment={"numpy": np.__version__}) as store:
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
        store.set_fact("replicas", [""])
        store.complete_seeds((), [])
        answers = [_answers(kind, number) for number in range(len(found))]
        store.add_seed_answers(
            SeedAnswer(one.name, *both, Decision.DEVIATION)
            if one.status is Status.SEED_DEVIATES
            else SeedAnswer(one.name, both[0], both[0], Decision.AGREE)
            for one, both in zip(found, answers, strict=True)
        )
        for number, (one, both) in enumerate(zip(found, answers, strict=True)):
            store.add_outcome(_outcome(store, one, both, number, device))
        store.set_fact("finished", True)
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


def _outcome(
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


def _config() -> dict[str, Any]:
    config = CampaignConfig.model_validate(
        {
            "original": {"path": "speech.onnx"},
            "deployed": {"path": "speech-int8.onnx"},
            "seeds": {"path": "clips"},
            "search": {"seed": 0},
        }
    )
    return config.model_dump(mode="json")
