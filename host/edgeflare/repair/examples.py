"""The answers of both models to a campaign's inputs, from which a repair is made."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.metrics import class_scores, is_finite, top_label
from edgeflare.campaign.status import replica_names
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.types import TRIGGERS, Output
from edgeflare_agent.repair import KINDS

NO_LABEL = -1


class Examples(NamedTuple):
    """Inputs with the deployed model's answers, and the classes that the original decides for.

    `scores`: float64 [n, classes], the deployed model's probabilities; `wanted`: int64 [n], the
    original's class; `labels`: int64 [n], the true class, -1 where it isn't known; `groups`: int64
    [n], the number of the seed input that each was made from; `is_seed`: bool [n], those themselves;
    `triggering`: bool [n]. Seed inputs on which the models deviate are triggering. `kind` is what the deployed model's output holds.
    """

    scores: NDArray[np.float64]
    wanted: NDArray[np.int64]
    labels: NDArray[np.int64]
    groups: NDArray[np.int64]
    is_seed: NDArray[np.bool_]
    triggering: NDArray[np.bool_]
    kind: str

    @property
    def decided(self) -> NDArray[np.int64]:
        """The deployed model's classes, int64 [n]."""
        return np.asarray(self.scores.argmax(axis=1))

    @property
    def margins(self) -> NDArray[np.float64]:
        """Top-1 minus top-2 probability of the deployed model, float64 [n]."""
        top = np.partition(self.scores, -2, axis=1)[:, -2:]
        return np.asarray(top[:, 1] - top[:, 0])

    def at(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "Examples":
        """Return those that are chosen, bool [n], or at these places, int64 [m]."""
        *columns, kind = self
        return Examples._make([*(column[chosen] for column in columns), kind])


def examples_of(folder: Path, *, need_triggering: bool = True) -> Examples:
    """Return the seed inputs and triggering inputs of a campaign; those without an answer are left out.

    Where each device searches for itself, those of the first one, so that no input counts twice.

    Raises UsageError where the models don't give a probability for each class, or where there is no
    triggering input and `need_triggering`; StoreError.
    """
    with Store.open(folder) as store:
        kind = str(store.models.get("deployed", {}).get("output", {}).get("kind", ""))
        if store.kind.counts_objects:
            raise UsageError(
                f"{folder}: the models answer with {kind}, and what corrects a model's "
                "answers is made of one decision an input, with a probability for each class; "
                f"try `edgeflare repair recipes {folder}`"
            )
        if kind not in KINDS:
            raise UsageError(
                f"{folder}: the deployed model returns {kind or 'nothing yet'}; a repair is made of "
                f"{' or '.join(KINDS)} of classes"
            )
        if store.models["deployed"].get("repair"):
            raise UsageError(
                f"the deployed model of {folder} is repaired; a repair is made of the model's own "
                "answers: name a campaign without --repair"
            )
        rows = list(_rows(store))
    if need_triggering and not any(row[-1] for row in rows):
        raise UsageError(f"{folder} has no triggering input: there is nothing to repair")
    types = (np.float64, *3 * (np.int64,), *2 * (np.bool_,))
    columns: list[NDArray[Any]] = [
        np.array([row[place] for row in rows], dtype) for place, dtype in enumerate(types)
    ]
    return Examples._make([*columns, kind])


def _rows(store: Store) -> Iterator[tuple[Any, ...]]:
    replica = replica_names(store)[0]
    seeds = {seed.id: seed for seed in store.seeds(replica)}
    for seed in seeds.values():
        label = NO_LABEL if seed.label is None else seed.label
        if seed.outputs is not None:
            original, deployed, _ = seed.outputs
            yield from _row(original, deployed, label, seed.position, is_seed=True)
    for outcome in store.outcomes_of(replica):
        if outcome.status in TRIGGERS and outcome.trigger is not None:
            seed = seeds[outcome.seed_id]
            if outcome.trigger != seed.sample:  # else it is there already
                yield from _row(
                    outcome.original, outcome.deployed, NO_LABEL, seed.position, is_seed=False
                )


def _row(
    original: Output | None, deployed: Output | None, label: int, group: int, *, is_seed: bool
) -> Iterator[tuple[Any, ...]]:
    if original is None or deployed is None:
        return
    if is_finite(original) and is_finite(deployed):
        wanted, decided = top_label(original), top_label(deployed)
        if wanted is not None:
            yield class_scores(deployed), wanted, label, group, is_seed, wanted != decided
