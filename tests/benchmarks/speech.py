"""What Whisper's float32 and int8 files hear, and how long it takes.

python tests/benchmarks/speech.py MODELS SPEECH [--threads 1 2]

MODELS is the folder that deploy/speech/export_whisper.py wrote, SPEECH one of WAV files with transcripts.tsv (file, tab, text).
The front end and the decoder are EdgeFlare's own; seconds are of all that: preparing, inferring, decoding.
"""

import argparse
import statistics
import time
from pathlib import Path

from rapidfuzz.distance import Levenshtein
from rich.console import Console
from rich.table import Table

from edgeflare.answers.transcripts import spoken
from edgeflare.models import InputOptions, OriginalModel, resolve_input
from edgeflare.models.image_input import options_in_file
from edgeflare.seeds import open_audio_seeds
from edgeflare.types import Sample, Transcript

NAMES = {"float32": "whisper-tiny-en.onnx", "int8": "whisper-tiny-en.int8.onnx"}


def heard(path: Path, threads: int, samples: list[Sample]) -> tuple[list[str], list[float]]:
    """Return the text of each sample, and its seconds."""
    model = OriginalModel(path, "onnx", {"threads": threads})
    stated = options_in_file(model.metadata, str(path))
    spec = resolve_input(model.input, InputOptions(), stated, path.name)
    model.configure(spec, None, {"vocabulary": None})
    texts, seconds = [], []
    for sample in samples:
        began = time.monotonic()
        decoded = model.raw(sample)
        seconds.append(time.monotonic() - began)
        texts.append(Transcript(decoded.pieces, decoded.scores).text)
    model.close()
    return texts, seconds


def word_error_rate(texts: list[str], said: list[str]) -> float:
    """Return substituted, missing and added words over all that were said."""
    pairs = [(spoken(one), spoken(other)) for one, other in zip(said, texts, strict=True)]
    errors = sum(Levenshtein.distance(one, other) for one, other in pairs)
    return errors / sum(len(one) for one, _ in pairs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path)
    parser.add_argument("speech", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    lines = (arguments.speech / "transcripts.tsv").read_text(encoding="utf-8").splitlines()
    said = dict(line.split("\t") for line in lines)
    seeds = [
        seed
        for seed in open_audio_seeds(arguments.speech, rate=16_000, samples=480_000)
        if seed.id in said
    ]
    texts: dict[str, list[str]] = {}
    table = Table("model", "threads", "median s", "slowest s", "word error rate", "as float32")
    for kind, name in NAMES.items():
        for threads in arguments.threads:
            texts[kind], seconds = heard(
                arguments.models / name, threads, [seed.sample for seed in seeds]
            )
            same = [
                spoken(one) == spoken(other)
                for one, other in zip(texts["float32"], texts[kind], strict=True)
            ]
            rate = word_error_rate(texts[kind], [said[seed.id] for seed in seeds])
            table.add_row(
                *(kind, str(threads), f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"),
                *(f"{rate:.1%}", f"{sum(same)} of {len(same)}"),
            )
    Console().print(table)


if __name__ == "__main__":
    main()
