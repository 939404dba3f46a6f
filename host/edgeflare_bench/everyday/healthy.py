"""Healthy pairs: each original and what many tool chains make of it, checked without a triage.

A pair is healthy where two things hold, both stated before any triage was run: the deployed model was
made by the recipe of its tool chain's own documentation, calibrated on natural inputs of the original;
and on `HELD_OUT` generated inputs that neither training nor calibration saw, it does its task less than
`LOSS` worse than the original: accuracy of classes, F1 of boxes, mean intersection over union of maps,
share of nearest neighbours of one class of embeddings. What fails that is left out and counted. So is what
was made from a float file that a converter got wrong, see `without_wrong_conversions`.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
    files_of,
    model_file,
)
from edgeflare_bench.everyday.originals import PLANS, examples, open_everyday
from edgeflare_bench.everyday.pictures import Examples
from edgeflare_bench.everyday.records import EverydayOriginal, EverydayPair
from edgeflare_bench.everyday.tool_chains import TOOL_CHAINS, ToolChain
from edgeflare_bench.words.everyday import NOT_INSTALLED, NOT_RUN

HELD_OUT = 400
LOSS = 0.03
_RECORD = "healthy.jsonl"


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
            tell(NOT_INSTALLED.format(chain.name, ", ".join(chain.missing)))
    for name in originals:
        original = open_everyday(name, folder / "originals")
        held_out = examples(name, "held out", HELD_OUT)
        reached = _reached(original, original.path, held_out)
        for chain in TOOL_CHAINS:
            # what couldn't be made is recorded as well: a run that goes on doesn't try it again
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
    chains = {chain.name: chain for chain in TOOL_CHAINS}
    originals: dict[str, EverydayOriginal] = {}
    pairs = []
    for built in built_pairs(folder):
        of, chain, variant = built.name.split("/")
        if built.is_healthy and of in names:
            if of not in originals:
                originals[of] = open_everyday(of, folder / "originals")
            pairs.append(_pair(originals[of], chains[chain], variant, folder))
    return pairs


_BY_ONNX2TF = ("onnx2tf", "tensorflow", "litert")


def without_wrong_conversions(pairs: Sequence[EverydayPair]) -> list[EverydayPair]:
    """Leave out what was made from a float TFLite file that doesn't compute what its original does.

    Nothing is rounded there, so that a difference by which a planted fault is seen is a fault as well.
    """
    wrong = set()
    for pair in pairs:
        if pair.name.endswith("/onnx2tf/float32"):
            samples = pair.samples[:DEVICE_SEEDS]
            original, deployed = (answers_of(file, samples) for file in files_of(pair))
            if error_between(original, deployed) >= SEEN["float32"]:
                wrong.add(pair.of)
    return [pair for pair in pairs if pair.of not in wrong or pair.tool_chain not in _BY_ONNX2TF]


def left_out(folder: Path) -> Mapping[str, Counter[str]]:
    """Return by tool chain how many variants are "healthy", do "worse" or could not be made ("none")."""
    counts: dict[str, Counter[str]] = {}
    for built in built_pairs(folder):
        outcome = "none" if built.problem else "healthy" if built.is_healthy else "worse"
        counts.setdefault(built.tool_chain, Counter())[outcome] += 1
    return counts


def _reached(original: EverydayOriginal, path: Path, held_out: Examples) -> float:
    """Return how well a file does the original's task, 0 to 1."""
    file = model_file("deployed", path, original.input, given_of(original, path))
    return original.task.measure(answers_of(file, list(held_out.samples)), held_out.truth)


def _file(of: str, chain: ToolChain, variant: str, folder: Path) -> Path:
    return folder / "healthy" / of / chain.name / f"{variant}{chain.suffix}"


def _built(
    original: EverydayOriginal,
    held_out: Examples,
    chain: ToolChain,
    variant: str,
    folder: Path,
    reached: float,
) -> BuiltPair:
    path = _file(original.name, chain, variant, folder)
    name = f"{original.name}/{chain.name}/{variant}"
    if chain.of_program and original.given != ONE_INPUT:
        return BuiltPair(name, reached, problem=NOT_RUN)
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
    path = _file(original.name, chain, variant, folder)
    first = original.path.with_suffix(".pt2") if chain.of_program else original.path
    return EverydayPair(
        *(f"{original.name}/{chain.name}/{variant}", chain.name, first, path, original.name),
        *(original.input, original.input, original.samples, original.labels, original.kind),
        original_given=given_of(original, first),
        deployed_given=given_of(original, path),
    )
