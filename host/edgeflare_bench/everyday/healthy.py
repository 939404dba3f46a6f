"""Healthy pairs: each original and what many tool chains make of it, checked without a triage.

A pair is healthy where three things hold, none of which uses the triage: the deployed model was
made by the recipe of its tool chain's own documentation, calibrated on natural inputs of the original;
and on `HELD_OUT` generated inputs that neither training nor calibration saw, it does its task less than
`LOSS` worse than the original: accuracy of classes, F1 of boxes, mean intersection over union of maps,
share of nearest neighbours of one class of embeddings; and it is not made from a float conversion that
answers otherwise than the original by as much as a fault would. What fails that is left out and counted.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from edgeflare._internal.text import reason
from edgeflare.devices.runtimes import runtime_for
from edgeflare.models import ONE_INPUT
from edgeflare_agent.configuration.fixed_inputs import GivenInputs
from edgeflare_agent.runtimes import load
from edgeflare_bench.everyday.evaluation import (
    DEVICE_SEEDS,
    SEEN,
    answers_of,
    error_between,
    model_file,
)
from edgeflare_bench.everyday.originals import PLANS, examples, open_everyday
from edgeflare_bench.everyday.pictures import Examples
from edgeflare_bench.everyday.records import EverydayOriginal, EverydayPair
from edgeflare_bench.everyday.tasks import TASKS
from edgeflare_bench.everyday.tool_chains import TOOL_CHAINS, ToolChain

HELD_OUT = 400
LOSS = 0.03
_RECORD = "healthy.jsonl"
_CHAINS = {chain.name: chain for chain in TOOL_CHAINS}
_CONVERTED = "onnx2tf", "float32"
"""The tool chain and variant of the float TFLite file from which others are made."""


@dataclass(frozen=True)
class BuiltPair:
    """What became of one variant of a tool chain: how well both models do the task, 0 to 1.

    `problem`: why there is no deployed model, "" where there is one.
    """

    name: str
    of_original: float
    of_deployed: float = 0.0
    problem: str = ""

    @property
    def tool_chain(self) -> str:
        """The name of the tool chain."""
        return self.name.split("/")[1]

    @property
    def is_healthy(self) -> bool:
        """Whether the deployed model does its task as well as the original does."""
        return not self.problem and self.of_original - self.of_deployed < LOSS


def build_healthy(
    folder: Path, tell: Callable[[str], None], originals: Sequence[str] = tuple(PLANS)
) -> None:
    """Make the deployed models of all tool chains that are installed; what is there is kept.

    `tell` is given a line for each, and one for a tool chain that is left out. Takes some 20 minutes.
    """
    done = {built.name for built in built_pairs(folder)}
    for chain in TOOL_CHAINS:
        if chain.missing:
            tell(f"{chain.name}: left out, since {', '.join(chain.missing)} isn't installed")
    for name in originals:
        original = open_everyday(name, folder / "originals")
        held_out = examples(name, "held out", HELD_OUT)
        reached = _reached(original, original.path, held_out)
        for chain in TOOL_CHAINS:
            for variant in () if chain.missing else chain.variants:
                pair_name = f"{name}/{chain.name}/{variant}"
                if pair_name not in done:
                    built = _built(original, held_out, chain, variant, folder, reached)
                    with (folder / _RECORD).open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(built)) + "\n")
                    tell(f"{pair_name}: {built.problem or f'{built.of_deployed:.3f}'}")


def built_pairs(folder: Path) -> list[BuiltPair]:
    """Return what was built in a folder so far."""
    file = folder / _RECORD
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [BuiltPair(**json.loads(line)) for line in lines]


def healthy_pairs(folder: Path, names: Sequence[str] = tuple(PLANS)) -> list[EverydayPair]:
    """Return the healthy pairs of some originals that were built in a folder."""
    return [
        _pair(original, _CHAINS[built.tool_chain], built.name.split("/")[2], folder)
        for built, original, outcome in _outcomes(folder, names)
        if outcome == "healthy"
    ]


def left_out(folder: Path) -> Mapping[str, Counter[str]]:
    """Return by tool chain how many variants are "healthy", do "worse" or could not be made ("none").

    "differs": they are made from a float file that is no copy of the original, see `_outcomes`.
    """
    counts: dict[str, Counter[str]] = {}
    for built, _, outcome in _outcomes(folder, tuple(PLANS)):
        counts.setdefault(built.tool_chain, Counter())[outcome] += 1
    return counts


def _outcomes(
    folder: Path, names: Sequence[str]
) -> Iterator[tuple[BuiltPair, EverydayOriginal, str]]:
    """Yield what became of the variants of some originals.

    A float conversion from which a fault as large could be seen (`SEEN`) computes something else than the
    original, as well as it may do its task: what a tool chain makes from it is left out.
    """
    originals = {name: open_everyday(name, folder / "originals") for name in names}
    is_copy: dict[str, bool] = {}
    for built in built_pairs(folder):
        of, chain, _ = built.name.split("/")
        if of not in originals:
            continue
        outcome = "none" if built.problem else "healthy" if built.is_healthy else "worse"
        if outcome == "healthy" and _CONVERTED[0] in _CHAINS[chain].needs:
            if of not in is_copy:
                is_copy[of] = _is_copy(originals[of], _file(of, *_CONVERTED, folder))
            outcome = outcome if is_copy[of] else "differs"
        yield built, originals[of], outcome


def _is_copy(original: EverydayOriginal, path: Path) -> bool:
    files = (
        model_file("original", original.path, original.input, original.given),
        model_file("deployed", path, original.input, given_of(original, path)),
    )
    samples = original.samples[:DEVICE_SEEDS]
    return error_between(*(answers_of(file, samples) for file in files)) < SEEN["float32"]


def _reached(original: EverydayOriginal, path: Path, held_out: Examples) -> float:
    """Return how well a file does the original's task, 0 to 1."""
    file = model_file("deployed", path, original.input, given_of(original, path))
    return TASKS[original.task].measure(answers_of(file, list(held_out.samples)), held_out.truth)


def _file(of: str, chain: str, variant: str, folder: Path) -> Path:
    return folder / "healthy" / of / chain / f"{variant}{_CHAINS[chain].suffix}"


def _built(
    original: EverydayOriginal,
    held_out: Examples,
    chain: ToolChain,
    variant: str,
    folder: Path,
    reached: float,
) -> BuiltPair:
    path = _file(original.name, chain.name, variant, folder)
    name = f"{original.name}/{chain.name}/{variant}"
    if chain.of_program and original.given != ONE_INPUT:
        return BuiltPair(name, reached, problem="an exported program with several inputs isn't run")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if not path.is_file():
            chain.variants[variant](original, path)
        return BuiltPair(name, reached, _reached(original, path, held_out))
    except (Exception, SystemExit) as error:  # noqa: BLE001  tools raise and exit as they like
        return BuiltPair(name, reached, problem=f"{type(error).__name__}: {reason(error)}"[:300])


def given_of(original: EverydayOriginal, path: Path) -> GivenInputs:
    """Return how a sample becomes the inputs of a deployed file, whatever it calls them."""
    if original.given == ONE_INPUT:
        return ONE_INPUT
    opened = load(str(path), runtime_for(path), {"threads": 1})
    names = [info.name for info in opened.inputs]
    is_channels_last = opened.inputs[0].shape[-1] == 3
    opened.close()
    ordered = [
        next((name for name in names if part in name), names[place])
        for place, part in enumerate(original.given.names)
    ]
    return GivenInputs(tuple(ordered), axis=-2 if is_channels_last else -1)


def _pair(original: EverydayOriginal, chain: ToolChain, variant: str, folder: Path) -> EverydayPair:
    path = _file(original.name, chain.name, variant, folder)
    first = original.path.with_suffix(".pt2") if chain.of_program else original.path
    return EverydayPair(
        *(f"{original.name}/{chain.name}/{variant}", chain.name, first, path, original.name),
        *(original.input, original.input, original.samples, original.labels, original.kind),
        original_given=given_of(original, first),
        deployed_given=given_of(original, path),
    )
