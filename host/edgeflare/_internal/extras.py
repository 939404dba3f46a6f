"""Libraries of the extras, imported on first use; an error says how to install one."""

from importlib import import_module
from typing import Any

from edgeflare.errors import UsageError


def rapidfuzz() -> Any:
    """Return `rapidfuzz.distance`, which aligns words. Raises UsageError where it is missing."""
    return _load("rapidfuzz.distance", "RapidFuzz")


def soundfile() -> Any:
    """Return `soundfile`, which reads audio files. Raises UsageError where it is missing."""
    return _load("soundfile", "soundfile")


def soxr() -> Any:
    """Return `soxr`, which resamples audio. Raises UsageError where it is missing."""
    return _load("soxr", "soxr")


def mlflow() -> Any:
    """Return `mlflow`, which logs runs. Raises UsageError where it is missing."""
    return _load("mlflow", "MLflow", "mlflow", "--mlflow")


def _load(module: str, name: str, extra: str = "audio", what: str = "audio") -> Any:
    try:
        return import_module(module)
    except (ImportError, OSError) as error:
        raise UsageError(
            f"{what} needs {name}, which can't be imported here ({error}); install it with "
            f"`pip install 'edgeflare[{extra}]'`"
        ) from error
