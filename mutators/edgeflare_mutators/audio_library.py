"""The steps that audiomentations makes, each with our own parameters.

Its transforms draw from Python's and numpy's global generators. Here none does: each call has a transform of its own,
whose parameters are set and frozen before it runs. So calls on several threads don't meet, and no global generator is
seeded or consumed.
"""

import warnings
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from edgeflare_mutators.errors import MutationError
from edgeflare_mutators.natural import Corruption
from edgeflare_mutators.sample import Sample


class ByLibrary(Corruption):
    """A corruption of audio that audiomentations makes."""

    kind = "audio"

    def check_libraries(self) -> None:
        """Raise MutationError where audiomentations is missing."""
        _audiomentations()


def transformed(
    name: str, sample: Sample, rate: int, parameters: dict[str, Any], **options: Any
) -> Sample:
    """Return what the transform of this name makes of a sample: float32 [samples].

    `parameters` are those that it would draw, `options` those of its constructor. Raises MutationError where
    audiomentations is missing.
    """
    transform = getattr(_audiomentations(), name)(p=1.0, **options)
    transform.parameters = {"should_apply": True, **parameters}
    transform.freeze_parameters()
    result: Sample = np.asarray(transform(np.array(sample), rate), np.float32)
    return result


_IMPORTING = Lock()  # the filters of warnings are the process's, not the thread's


@lru_cache(maxsize=1)
def _audiomentations() -> Any:
    try:
        with _IMPORTING, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import audiomentations  # type: ignore[import-untyped]
    except (ImportError, OSError) as error:
        raise MutationError(
            f"mutating audio needs audiomentations, which can't be imported here ({error}); install it with "
            "`pip install 'edgeflare[audio]'`"
        ) from error
    return audiomentations
