"""What it costs that a front end gives the same bits on every processor, as a ratio to numpy's own transform.

python tests/benchmarks/front_ends.py [--runs 7]

The baseline does the same frames, transform, mel filters and logarithm with numpy.fft and a matrix product, in float64: as
fast as numpy alone makes it, and other in the last bit from processor to processor. Both in the same run, by turns; medians.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from audio_specs import KWS, WHISPER, clip

from edgeflare_agent.audio_spec import MelSpec
from edgeflare_agent.preprocess import prepare

CASES = {
    "MLPerf Tiny's MFCC, 1 s": (KWS, 16000),
    "Whisper's log-mel, 6 s": (WHISPER, 96000),
    "Whisper's log-mel, 30 s": (WHISPER, 480000),
}


def plain(sample: np.ndarray, mel: MelSpec, filters: np.ndarray, samples: int) -> np.ndarray:
    """Return log-mel bands by numpy's FFT."""
    padded = np.pad(sample.astype(np.float64), (0, samples - len(sample)))
    if mel.centered:
        padded = np.pad(padded, mel.fft // 2, mode="reflect")
    frames = sliding_window_view(padded, mel.window)[:: mel.stride]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(mel.window) / mel.window)
    bins = np.abs(np.fft.rfft(frames * window, mel.fft))
    return np.log(bins @ filters + 1e-6).astype(np.float32)


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Print a row a front end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    table = Table("front end", "exact ms", "numpy ms", "ratio")
    for name, (spec, length) in CASES.items():
        assert spec.mel is not None
        assert spec.samples is not None
        mel, samples = spec.mel, spec.samples
        sample = clip(length)
        filters = np.random.default_rng(0).random((mel.fft // 2 + 1, mel.bands))
        prepare(sample, spec)  # its tables are made once
        exact, quick = [], []
        for _ in range(runs):
            exact.append(seconds(lambda: prepare(sample, spec)))  # noqa: B023
            quick.append(seconds(lambda: plain(sample, mel, filters, samples)))  # noqa: B023
        ratio = statistics.median(a / b for a, b in zip(exact, quick, strict=True))
        medians = (f"{1000 * statistics.median(one):.2f}" for one in (exact, quick))
        table.add_row(name, *medians, f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
