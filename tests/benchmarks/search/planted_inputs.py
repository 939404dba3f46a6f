"""Does `edgeflare inputs` find the right preprocessing first, where one model's is stated wrongly?

Run: python tests/benchmarks/search/planted_inputs.py --data FOLDER [--pairs NAME...] [--unlabelled]

Seventeen mistakes, on the original and on the deployed model, as far as they apply to the pair; 50 seeds each.
EfficientNet-Lite0 has photographs without labels.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from shared_models import PAIRS, Pair

from edgeflare import config_from
from edgeflare.campaign import FoundInputs, find_inputs
from edgeflare.models import InputOptions, stated_options
from edgeflare.seeds import open_seeds

_IMAGENET = {"scale": "1/255", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
MISTAKES: tuple[dict[str, Any], ...] = (
    {"color": "BGR"},
    {"scale": "1"},
    {"scale": "1/255"},
    {"mean": 127.5, "std": 127.5},
    _IMAGENET,
    {"scale": "1/255", "mean": 0.1307, "std": 0.3081},
    {"mean": 128},
    {"color": "BGR", "mean": [103.939, 116.779, 123.68]},
    {"mean": 255, "std": -255},
    *(
        {"orientation": one}
        for one in ("rotate-90", "rotate-180", "rotate-270", "mirror", "flip", "transpose")
    ),
    {"color": "BGR", "orientation": "rotate-90"},
    {"scale": "1", "orientation": "mirror"},
)
_SCALING = {"scale", "mean", "std"}
_NAMES = [name for name, pair in PAIRS.items() if pair.images.startswith("images/")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", nargs="+", default=_NAMES, choices=_NAMES)
    parser.add_argument("--unlabelled", action="store_true", help="leave the labels out")
    stated = parser.parse_args()
    for name in stated.pairs:
        with tempfile.TemporaryDirectory() as folder:
            seeds = seeds_of(PAIRS[name], stated.data, Path(folder), stated.unlabelled)
            measure(name, stated.data, seeds)


def measure(name: str, data: Path, seeds: Path) -> None:
    """Print how often the right way comes first, and the device queries of each search."""
    pair = PAIRS[name]
    right = find(pair, data, seeds, pair.entry, pair.entry).stated
    assert right is not None
    truth = stated_options(right.original)
    hits, queries = 0, []
    for wrong in mistakes_of(pair):
        for sides in ((wrong, pair.entry), (pair.entry, wrong)):
            found = find(pair, data, seeds, *sides)
            best = found.pairs[0]
            hit = stated_options(best.original) == stated_options(best.deployed) == truth
            hits += hit
            queries.append(found.device_queries)
            if not hit:
                print(
                    f"  {wrong} of the {'original' if sides[0] is wrong else 'deployed model'}: {best.flags()}"
                )
    print(
        f"{name}: right first {hits} of {len(queries)}; device queries median "
        f"{statistics.median(queries):.0f}, most {max(queries)}",
        flush=True,
    )


def find(pair: Pair, data: Path, seeds: Path, first: Any, second: Any) -> FoundInputs:
    values = {
        "original": {"path": data / pair.original, "input": first},
        "deployed": {"path": data / pair.deployed, "input": second},
        "seeds": {"path": seeds},
        "devices": ["local"],
    }
    return find_inputs(config_from(values, "planted inputs"))


def mistakes_of(pair: Pair) -> Iterator[dict[str, Any]]:
    """Yield wrong entries for a pair: those that apply to its channels, and that aren't right."""
    grey = "mnist" in pair.images
    for change in MISTAKES:
        if grey and ("color" in change or isinstance(change.get("mean"), list)):
            continue
        anew = _SCALING & set(change)
        wrong = {key: one for key, one in pair.entry.items() if not anew or key not in _SCALING}
        wrong |= change
        if wrong != pair.entry and not _count_as_one(wrong, pair.entry):
            yield wrong


def _count_as_one(wrong: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether only the scalings differ, and by at most 1 % of the range."""
    others = [{key: one for key, one in of.items() if key not in _SCALING} for of in (wrong, right)]
    ranges = [
        InputOptions(**{key: one for key, one in of.items() if key in _SCALING}).pixel_range()
        for of in (wrong, right)
    ]
    return others[0] == others[1] and np.allclose(*ranges, rtol=0, atol=0.01 * np.ptp(ranges[1]))


def seeds_of(pair: Pair, data: Path, folder: Path, unlabelled: bool) -> Path:
    """Return an archive of the pair's images; of photographs those of two folders."""
    with np.load(data / pair.images) as stored:
        values = {key: stored[key] for key in ("images", "labels") if key in stored}
    if "labels" not in values:
        others = open_seeds(
            data / "images/photos_detection", size=(224, 224), channels=3, resize="crop"
        )
        values["images"] = np.concatenate([values["images"], [one.sample for one in others]])
    if unlabelled:
        values.pop("labels", None)
    np.savez(folder / "seeds.npz", **values)
    return folder / "seeds.npz"


if __name__ == "__main__":
    main()
