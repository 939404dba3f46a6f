"""Recipes for deployed models whose quantisation has a known fault: which of them mend it.

python tests/benchmarks/repair/faults.py [--seeds 50] [--survey]

The demo's original, quantised with a fault whose cause is named beforehand, and without one. For each a
campaign, its explanation with the layer that contributes most, what is clipped there and the levels in
use on seeds, and `edgeflare repair recipes`.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explanation"))

from campaigns import row
from planted_causes import FLOAT, coarse

from edgeflare import replay_base, replay_config, search
from edgeflare.explanation import explain_campaign
from edgeflare.models.quantized import Recipe, make_quantized
from edgeflare.repair import RecipesFound, recipes_campaign

_COLUMNS = (
    *("fault", "cause", "main layer", "clipped", "levels used", "recipe", "disagreement"),
    "share of the present",
)


class Fault(NamedTuple):
    """What is wrong, and its cause.

    `divisor`: calibration inputs are divided by it; `coarse_layer`: its weights have five values.
    """

    name: str
    cause: str
    divisor: float = 1
    coarse_layer: int | None = None


FAULTS = (
    Fault("none", ""),
    Fault("calibrated on images divided by 255 twice", "ranges too narrow", 255),
    Fault("calibrated on images not divided by 255", "ranges too wide", 1 / 255),
    Fault("five values for the second convolution", "scale of weights", coarse_layer=1),
)


def faulty(fault: Fault, images: NDArray[np.uint8], folder: Path) -> Path:
    """Quantise the original, one scale for each output channel, with a fault."""
    folder.mkdir()
    float_model = FLOAT
    if fault.coarse_layer is not None:
        float_model = coarse(folder / "coarse.onnx", fault.coarse_layer, integers=False)
    shape = (len(images), 1, 1, 28, 28)
    inputs = list((images.reshape(shape) / (255 * fault.divisor)).astype(np.float32))
    recipe = Recipe("int8-per-channel", per_channel=True)
    made = make_quantized(float_model, [recipe], inputs, folder, lambda name, problem: None)
    return made[recipe.name]


def measured(
    deployed: Path, seeds: dict[str, Any], folder: Path, survey: bool
) -> tuple[tuple[str, ...], RecipesFound]:
    """Run a campaign and the recipes; return the main layer's figures with what was found."""
    search(
        *({"path": one, "input": {"scale": "1/255"}} for one in (FLOAT, deployed)),
        seeds,
        folder=folder,
        strategy="boundary",
        allow_disagreement=True,
        survey={"enabled": survey},
    )
    layers = explain_campaign(folder, replay_config(replay_base(folder))).layers
    known: tuple[str, ...] = ("", "", "")
    if layers is not None and layers.layers:
        main = max(layers.layers, key=lambda one: one.mean)
        known = (main.name, percent(main.seeds.clipped), percent(main.seeds.levels))
    return known, recipes_campaign(folder, keep_float=0, survey=survey)


def percent(share: float | None) -> str:
    """Return a share in per cent."""
    return "" if share is None else f"{100 * share:.3g}"


def rows(fault: Fault, known: Sequence[str], found: RecipesFound) -> Iterator[str]:
    """Yield a row for each candidate, the winner's name in bold."""
    for one in found.candidates:
        value = one.disagreement
        yield row(
            (
                fault.name,
                fault.cause,
                *known,
                f"**{one.name}**" if one.name == found.winner else one.name,
                f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]",
                f"{value.value / found.present.disagreement.value:.2f}",
                *([] if one.confident is None else [percent(one.confident)]),
            )
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument(
        "--survey", action="store_true", help="one more column: confident deviations"
    )
    arguments = parser.parse_args()
    columns = (*_COLUMNS, *(["confident"] if arguments.survey else []))
    print(row(columns), row(["---"] * len(columns)), sep="\n", flush=True)
    archive = FLOAT.parent / "seeds.npz"
    with np.load(archive) as stored:
        images = stored["images"][: arguments.seeds]
    seeds = {"path": archive, "limit": arguments.seeds}
    with tempfile.TemporaryDirectory() as temporary:
        for number, fault in enumerate(FAULTS):
            folder = Path(temporary) / str(number)
            deployed = faulty(fault, images, folder)
            found = measured(deployed, seeds, folder / "campaign", arguments.survey)
            print(*rows(fault, *found), sep="\n", flush=True)


if __name__ == "__main__":
    main()
