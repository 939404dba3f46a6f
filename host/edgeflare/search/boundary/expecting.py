"""What drift to expect where the device was not asked: from both models' answers on the seeds, which are there anyway."""

from functools import cached_property

import numpy as np

from edgeflare.answers import class_scores
from edgeflare.search.boundary.points import Floats, logs_of
from edgeflare.types import KnownAnswers, Seed

_FARTHEST = 15.0
_LARGEST_DRIFT = 3.0
_RIDGE = 100.0
_OWN_SHARE = 0.3
_BY_CHANCE = 1.2
"""So many times 1 / sqrt(seeds) the share of right signs is off one half by chance; its deviation is half of that."""


class Expected:
    """The deployed model's log-probabilities less the original's, as a linear function of the original's.

    Ridge regression over the answers on the campaign's seeds (`Seed.known`), and three tenths of what the seed's own
    drift is off it; where there are too few, the drift at the seed itself stands for all others. Log-probabilities are centred, and clipped
    to +-15, their drift to +-3: a quantised probability of 0 says no more than that it is small.
    """

    def __init__(self, seed: Seed) -> None:
        original, deployed = seed.outputs.original, seed.outputs.deployed
        self._at_seed: Floats | None = None
        if original is not None and deployed is not None and not seed.labels_only:
            self._logs = logs_of(class_scores(original))
            self._at_seed = _drift(self._logs[None], logs_of(class_scores(deployed))[None])[0]
        self._known = seed.known if self._at_seed is not None else None
        self._fit: _Ridge | None = None

    def drift(self, logs: Floats, label: int, rival: int) -> float | None:
        """Return the expected drift of `label` over `rival` where the original's log-probabilities are `logs`.

        None where the device tells labels only.
        """
        if self._at_seed is None:
            return None
        drift = self._at_seed
        if self._known is not None and len(self._known.original) > len(logs):
            there, here = self._predicted(self._known, np.stack([logs, self._logs]))
            drift = there + _OWN_SHARE * (self._at_seed - here)
        return float(drift[label] - drift[rival])

    @property
    def reliable(self) -> bool:
        """Whether what is expected is worth more than chance.

        By how often the other seeds' drift foretells the sign of a seed's between its two likeliest classes; True where
        there are too few seeds to tell.
        """
        if self._at_seed is None:
            return False
        if self._known is None or len(self._known.original) <= len(self._logs):
            return True
        worth = 0.5 + _BY_CHANCE / len(self._known.original) ** 0.5
        return bool(self._ridge(self._known).right >= worth)

    def usual(self) -> float:
        """Return the median size of the drift between the two classes likeliest on a seed; 0 where it isn't known."""
        if self._known is None:
            return 0.0
        logs = logs_of(self._known.original)
        order = np.argsort(logs, axis=1)[:, -2:]
        drift = np.take_along_axis(_drift(logs, logs_of(self._known.deployed)), order, axis=1)
        return float(np.median(np.abs(drift[:, 1] - drift[:, 0])))

    def _predicted(self, known: KnownAnswers, logs: Floats) -> Floats:
        return self._ridge(known).predicted(logs)

    def _ridge(self, known: KnownAnswers) -> "_Ridge":
        if self._fit is None:
            self._fit = _Ridge(known)
        return self._fit


class _Ridge:
    """Ridge regression in its dual form (as many unknowns as seeds); what all seeds share is not shrunk."""

    def __init__(self, known: KnownAnswers) -> None:
        logs = logs_of(known.original)
        features, drift = _features(logs), _drift(logs, logs_of(known.deployed))
        self._centre: Floats = np.asarray(features.mean(axis=0))
        self._usual: Floats = np.asarray(drift.mean(axis=0))
        self._features = features - self._centre
        gram = self._features @ self._features.T + _RIDGE * np.eye(len(features))
        self._weights = np.linalg.solve(gram, drift - self._usual)
        self._gram = gram
        self._logs = logs
        self._drift = drift

    @cached_property
    def right(self) -> float:
        """The share of seeds of whose drift, between their two likeliest classes, the others foretell the sign.

        Where it is 0 (both clipped), half a seed is counted. Leaving one out (but for the means) in closed form: of ridge regression the error is the weight over the inverse's diagonal.
        """
        shrunk = np.diag(np.linalg.inv(self._gram))
        left_out = self._drift - self._weights / shrunk[:, None]
        order = np.argsort(self._logs, axis=1)[:, -2:]
        real, foretold = (
            np.diff(np.take_along_axis(one, order, axis=1), axis=1)[:, 0]
            for one in (self._drift, left_out)
        )
        return float(np.mean(np.where(real == 0, 0.5, np.sign(real) == np.sign(foretold))))

    def predicted(self, logs: Floats) -> Floats:
        """Return the drift of log-probabilities, float64 [n, classes]."""
        shares = (_features(logs) - self._centre) @ self._features.T
        return np.asarray(self._usual + shares @ self._weights)


def _features(logs: Floats) -> Floats:
    centred = np.clip(logs - logs.mean(axis=1, keepdims=True), -_FARTHEST, _FARTHEST)
    return np.asarray(centred)


def _drift(original: Floats, deployed: Floats) -> Floats:
    drift = deployed - original
    return np.asarray(
        np.clip(drift - drift.mean(axis=1, keepdims=True), -_LARGEST_DRIFT, _LARGEST_DRIFT)
    )
