"""Libraries of the extras, imported on first use; an error says how to install one."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from edgeflare.errors import UsageError


class Deferred:
    """A module that one of the functions below imports when an attribute is first asked for."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        return getattr(self._load(), name)


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


def torch() -> Any:
    """Return `torch`, which computes gradients. Raises UsageError where it is missing."""
    return _load("torch", "PyTorch", "torch", "a gradient of the original")


def onnx(extra: str = "bench") -> Any:
    """Return `onnx`, which reads and writes graphs; `extra` is named where it is missing.

    Raises UsageError then.
    """
    _load("onnx.numpy_helper", "onnx", extra, "reading an ONNX graph")
    return import_module("onnx")


def scikit_learn(module: str) -> Any:
    """Return a module of scikit-learn, which trains repairs. Raises UsageError where it is missing."""
    return _load(f"sklearn.{module}", "scikit-learn", "repair", "training a repair")


def _load(module: str, name: str, extra: str = "audio", what: str = "audio") -> Any:
    try:
        return import_module(module)
    except (ImportError, OSError) as error:
        raise UsageError(
            f"{what} needs {name}, which can't be imported here ({error}); install it with "
            f"`pip install 'edgeflare[{extra}]'`"
        ) from error
