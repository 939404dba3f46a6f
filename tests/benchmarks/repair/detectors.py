"""Recipes for detectors: objects that differ on the seeds, and a new search on each candidate.

python tests/benchmarks/repair/detectors.py [--data FOLDER] [--pairs ...] [--seeds 12] [--recipes NAME ...]
    [--first] [--keep FOLDER2]

The demo's detector with boxes and scores under one scale, FastestDet and RFB-320 (per tensor) on
photographs of FOLDER, evenly spread over all of them, or the first by name (`--first`). A campaign of
each pair (seeds alone, no survey, one thread), and `edgeflare repair recipes`; the last five columns
are of all photographs, by decoders apart from EdgeFlare's. FOLDER2 keeps the campaigns: what is there
goes on, finished ones are read.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explanation"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "search"))

from campaigns import row
from demo_detectors import DETECTION_DEMO, with_one_scale
from detection_pairs import DETECTORS, model, photographs
from detector_models import (
    FASTESTDET_CONFIDENCE,
    FASTESTDET_NMS,
    RFB_CONFIDENCE,
    RFB_NMS,
    detector_path,
)

from edgeflare import config_from, resume_campaign, run_campaign
from edgeflare._internal.text import p_value_text
from edgeflare.analysis import rank_campaigns
from edgeflare.answers.detections.figures import difference_counts
from edgeflare.repair import RecipesFound, recipes_campaign

_FLOOR = 0.001
"""The campaigns' margin floor: differences with a smaller margin don't count."""
DEMO = "demo, one scale"
_COLUMNS = (
    *("pair", "recipe", "bytes", "differ", "lost", "ghost", "class", "shift", "disagreement", "p"),
    *("found", "queries", "ms", "all: differ", "lost", "ghost", "class", "shift"),
)
_DETECTORS: dict[str, tuple[str, dict[str, Any]]] = {
    "FastestDet": (
        "fastestdet",
        {
            "input": {"color": "BGR", "scale": "1/255", "layout": "CHW"},
            "decoder": {"kind": "fastestdet"},
            "detection": {"confidence": FASTESTDET_CONFIDENCE, "nms": FASTESTDET_NMS},
        },
    ),
    "RFB-320": (
        "rfb320",
        {
            "input": {"layout": "CHW", "mean": 127, "std": 128},
            "decoder": {},
            "detection": {"confidence": RFB_CONFIDENCE, "nms": RFB_NMS},
        },
    ),
}
PAIRS = (DEMO, *_DETECTORS)


def chosen(data: Path, folder: Path, count: int, *, first: bool) -> Path:
    """Return a folder with so many of the photographs."""
    files = sorted((data / "images" / "photos_detection").iterdir())
    folder.mkdir(exist_ok=True)
    for number in range(count):
        file = files[number if first else number * len(files) // count]
        (folder / file.name).unlink(missing_ok=True)
        (folder / file.name).symlink_to(file)
    return folder


def settings(
    pair: str, data: Path | None, folder: Path, seeds: int, *, first: bool
) -> dict[str, Any]:
    """Return the models and seeds of a pair, as a campaign's settings."""
    if pair == DEMO:
        models = DETECTION_DEMO / "original.onnx", with_one_scale(folder / "one_scale.onnx")
        entry: dict[str, Any] = {"input": {"scale": "1/255"}}
        found: dict[str, Any] = {"seeds": {"path": DETECTION_DEMO / "seeds.npz"}}
    else:
        if data is None:
            raise SystemExit(f"{pair} needs --data")
        name, about = _DETECTORS[pair]
        models = detector_path(data, f"{name}_fp32"), detector_path(data, f"{name}_int8_pertensor")
        entry = {"input": about["input"]}
        found = {
            "seeds": {
                "path": chosen(data, folder / "photographs", seeds, first=first),
                "resize": "bilinear",
            },
            "detection": about["detection"],
        }
        if about["decoder"]:
            entry["decoder"] = about["decoder"]
    sides = ("original", "deployed")
    one_thread = {"options": {"threads": 1}}
    found |= {
        side: {"path": path, **entry, **one_thread}
        for side, path in zip(sides, models, strict=True)
    }
    return found


def measured(
    pair: str, data: Path | None, folder: Path, seeds: int, only: list[str], *, first: bool
) -> RecipesFound:
    """Run a pair's campaign and try the recipes."""
    folder.mkdir(parents=True, exist_ok=True)
    values = settings(pair, data, folder, seeds, first=first)
    values["seeds"] = {**values["seeds"], "limit": seeds}
    out = folder / "campaign"
    if out.is_dir():
        resume_campaign(out)
    else:
        run_campaign(
            config_from(
                {
                    **values,
                    "search": {"strategy": "none"},
                    "survey": {"enabled": False},
                    "out": out,
                },
                "the benchmark",
            )
        )
    return recipes_campaign(out, only=only)


def on_all(pair: str, data: Path | None, files: Sequence[Path]) -> list[list[str]]:
    """Return of each model file what differs on all photographs; nothing for the demo."""
    if pair == DEMO or data is None:
        return [[] for _ in files]
    name, _ = _DETECTORS[pair]
    detector = DETECTORS[name]
    samples = [one for _, one in photographs(data / "images" / "photos_detection", detector.size)]
    original = model(detector_path(data, f"{name}_fp32"), detector)
    wanted = [original(one) for one in samples]
    found = []
    for file in files:
        deployed = model(file, detector)
        counts = difference_counts(
            zip(wanted, [deployed(one) for one in samples], strict=True), _FLOOR
        )
        kinds = [str(one) for one in counts.kinds.values()]
        share = sum(counts.kinds.values()) / counts.original
        found.append([f"{share:.1%} of {counts.original}", *kinds])
    return found


def rows(pair: str, found: RecipesFound, data: Path | None) -> Iterator[str]:
    """Yield a row for each candidate, least disagreement first; p against the present model."""
    searches = Path(found.folder) / "searches"
    present = Path(found.present.file).stem
    everywhere = on_all(pair, data, [Path(one.file) for one in found.candidates])
    for one, more in zip(found.candidates, everywhere, strict=True):
        known, objects = one.disagreement, one.objects
        assert objects is not None
        p = ""
        if one is not found.present:
            names = [present, Path(one.file).stem]
            (duel,) = rank_campaigns([searches / name for name in names], names=names).duels
            p = p_value_text(duel.p)
        yield row(
            (
                pair,
                f"**{one.name}**" if one.name == found.winner else one.name,
                f"{one.size:,}",
                f"{objects.count} of {objects.original} ({objects.share:.1%})",
                *objects.kinds.values(),
                f"{known.value:.3f} [{known.low:.3f}, {known.high:.3f}]",
                p,
                f"{one.found} of {one.searched}",
                "" if one.queries is None else f"{one.queries:.1f}",
                "" if one.latency_s is None else f"{1000 * one.latency_s:.3g}",
                *more,
            )
        )


def main() -> None:
    """Print the table, and what could not be made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--pairs", nargs="+", choices=PAIRS, default=PAIRS)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--recipes", nargs="+", default=[])
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    print(row(_COLUMNS), row(["---"] * len(_COLUMNS)), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for pair in arguments.pairs:
            place = (arguments.keep or Path(folder)).absolute() / pair.replace(" ", "-")
            found = measured(
                pair, arguments.data, place, arguments.seeds, arguments.recipes,
                first=arguments.first,
            )  # fmt: skip
            print(*rows(pair, found, arguments.data), sep="\n", flush=True)
            for name, why in found.failed.items():
                print(f"{pair}: {name} is left out: {why}", flush=True)


if __name__ == "__main__":
    main()
