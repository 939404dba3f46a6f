"""The deployed models that a suite asks to make from their originals (section 5.4.1)."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from edgeflare.bench.cells import Cell, made_model
from edgeflare.bench.opening import Bench, State
from edgeflare.bench.sections import PairConfig
from edgeflare.errors import UsageError
from edgeflare.store.failures import told_of


def make_model(folder: Path, pair: PairConfig) -> None:
    """Make a pair's deployed model in the bench's folder, unless it is there or is not to be made.

    Raises UsageError where it can't be made from the original, StoreError where it can't be written.
    """
    made = made_model(folder, pair)
    if pair.perturb is None or made.is_file():
        return
    if not pair.original.path.is_file():
        raise UsageError(f"there is no model file {pair.original.path}")
    from edgeflare.bench.perturb import perturb_weights

    with told_of(folder):
        made.parent.mkdir(exist_ok=True)
        perturb_weights(pair.original.path, made, **pair.perturb.model_dump())


def make_again(bench: Bench, states: Mapping[Cell, State]) -> None:
    """Make the models again that were removed since their cells began; they come out the same.

    One that can't be made stays away: whoever looks for changes says so.
    """
    for pair in bench.suite.pairs:
        own = {state for cell, state in states.items() if cell.pair == pair.name}
        if own - {"missing"} and own != {"finished"}:
            with suppress(UsageError):
                make_model(bench.folder, pair)
