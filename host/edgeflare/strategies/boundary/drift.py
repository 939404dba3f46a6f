"""The drift to expect where the device was not asked, estimated from both models' answers to the seeds."""

from functools import cached_property

import numpy as np

from edgeflare.metrics import class_scores
from edgeflare.strategies.boundary.points import Floats, log_probabilities
from edgeflare.types import KnownAnswers, Seed

_MAX_LOG_PROB = 15.0
_MAX_DRIFT = 3.0
_RIDGE = 100.0
_SEED_SHARE = 0.3
_CHANCE = 1.2
"""By chance the share of right signs differs from one half by this times 1 / sqrt(seeds): 2.4 standard deviations."""


class DriftModel:
    """The deployed model's log-probabilities less the original's, as a linear function of the original's.

    Ridge regression over the answers to the campaign's seeds (`Seed.known`), plus three tenths of
    the residual at the search's own seed; where there are too few seeds, the drift at its own seed
    everywhere. Log-probabilities are centred and clipped to +-15, their drift to +-3: a quantised
    probability of 0 only means that it is small.
    """

    def __init__(self, seed: Seed) -> None:
        original, deployed = seed.outputs.original, seed.outputs.deployed
        self._at_seed: Floats | None = None
        if original is not None and deployed is not None and not seed.labels_only:
            self._log_probs = log_probabilities(class_scores(original))
            self._at_seed = _drift(
                self._log_probs[None], log_probabilities(class_scores(deployed))[None]
            )[0]
        self._known = seed.known if self._at_seed is not None else None
        self._fit: _Ridge | None = None

    def predict(self, log_probs: Floats, label: int, rival: int) -> float | None:
        """Return the expected drift of `label` over `rival` where the original's log-probabilities are `log_probs`.

        `log_probs`: float64 [classes]. None where the device returns labels only.
        """
        if self._at_seed is None:
            return None
        drift = self._at_seed
        if self._known is not None and len(self._known.original) > len(log_probs):
            there, here = self._ridge(self._known).predict(np.stack([log_probs, self._log_probs]))
            drift = there + _SEED_SHARE * (self._at_seed - here)
        return float(drift[label] - drift[rival])

    @property
    def is_reliable(self) -> bool:
        """Whether the predictions are better than chance; True where there are too few seeds to know.

        Measured by how often the sign of a seed's drift between its two likeliest classes is
        predicted from the other seeds.
        """
        if self._at_seed is None:
            return False
        if self._known is None or len(self._known.original) <= len(self._log_probs):
            return True
        wanted = 0.5 + _CHANCE / len(self._known.original) ** 0.5
        return bool(self._ridge(self._known).sign_accuracy >= wanted)

    def typical(self) -> float:
        """Return the median size of the drift between the two likeliest classes of a seed; 0 where it is not known."""
        if self._known is None:
            return 0.0
        log_probs = log_probabilities(self._known.original)
        order = np.argsort(log_probs, axis=1)[:, -2:]
        drift = np.take_along_axis(
            _drift(log_probs, log_probabilities(self._known.deployed)), order, axis=1
        )
        return float(np.median(np.abs(drift[:, 1] - drift[:, 0])))

    def _ridge(self, known: KnownAnswers) -> "_Ridge":
        if self._fit is None:
            self._fit = _Ridge(known)
        return self._fit


class _Ridge:
    """Ridge regression in its dual form (as many unknowns as seeds); the mean over all seeds is not shrunk."""

    def __init__(self, known: KnownAnswers) -> None:
        log_probs = log_probabilities(known.original)
        features, drift = _features(log_probs), _drift(log_probs, log_probabilities(known.deployed))
        self._centre: Floats = np.asarray(features.mean(axis=0))
        self._mean: Floats = np.asarray(drift.mean(axis=0))
        self._features = features - self._centre
        gram = self._features @ self._features.T + _RIDGE * np.eye(len(features))
        self._weights = np.linalg.solve(gram, drift - self._mean)
        self._gram = gram
        self._log_probs = log_probs
        self._drift = drift

    @cached_property
    def sign_accuracy(self) -> float:
        """The share of seeds whose sign of drift, between their two likeliest classes, is predicted from the other seeds.

        Where the drift is 0 (both clipped), half a seed is counted. Leave-one-out, but for the
        means, in closed form: the error of ridge regression is the weight over the diagonal of the
        inverse.
        """
        shrunk = np.diag(np.linalg.inv(self._gram))
        left_out = self._drift - self._weights / shrunk[:, None]
        order = np.argsort(self._log_probs, axis=1)[:, -2:]
        real, predicted = (
            np.diff(np.take_along_axis(one, order, axis=1), axis=1)[:, 0]
            for one in (self._drift, left_out)
        )
        return float(np.mean(np.where(real == 0, 0.5, np.sign(real) == np.sign(predicted))))

    def predict(self, log_probs: Floats) -> Floats:
        """Return the drift at inputs with these log-probabilities, both float64 [n, classes]."""
        shares = (_features(log_probs) - self._centre) @ self._features.T
        return np.asarray(self._mean + shares @ self._weights)


def _features(log_probs: Floats) -> Floats:
    return _centred(log_probs, _MAX_LOG_PROB)


def _drift(original: Floats, deployed: Floats) -> Floats:
    return _centred(deployed - original, _MAX_DRIFT)


def _centred(values: Floats, most: float) -> Floats:
    return np.asarray(np.clip(values - values.mean(axis=1, keepdims=True), -most, most))
