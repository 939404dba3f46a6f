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
    return _load("rapidfuzz.distance", "RapidFuzz", "text", "comparing texts")


def soundfile() -> Any:
    """Return `soundfile`, which reads audio files. Raises UsageError where it is missing."""
    return _load("soundfile", "soundfile")


def soxr() -> Any:
    """Return `soxr`, which resamples audio. Raises UsageError where it is missing."""
    return _load("soxr", "soxr")


def mlflow() -> Any:
    """Return `mlflow`, which logs runs. Raises UsageError where it is missing."""
    return _load("mlflow", "MLflow", "mlflow", "--mlflow")


def distributed() -> Any:
    """Return `distributed`, Dask's scheduler and workers. Raises UsageError where it is missing."""
    return _load("distributed", "Dask", "distributed", "a campaign on several hosts")


def torch(extra: str = "torch", what: str = "a gradient of the original") -> Any:
    """Return `torch`, which `what` needs; `extra` is named where it is missing. Raises UsageError then."""
    return _load("torch", "PyTorch", extra, what)


def onnx(what: str = "reading an ONNX graph") -> Any:
    """Return `onnx`, which `what` needs and every installation has. Raises UsageError where it is broken."""
    _load("onnx.numpy_helper", "onnx", "", what)
    return import_module("onnx")


def scikit_learn(module: str, extra: str = "repair", what: str = "training a repair") -> Any:
    """Return a module of scikit-learn, which `what` needs. Raises UsageError where it is missing."""
    return _load(f"sklearn.{module}", "scikit-learn", extra, what)


def _load(module: str, name: str, extra: str = "audio", what: str = "audio") -> Any:
    try:
        return import_module(module)
    except (ImportError, OSError) as error:
        raise UsageError(
            f"{what} needs {name}, which can't be imported here ({error}); install it with "
            + (f"`pip install 'edgeflare[{extra}]'`" if extra else f"`pip install {name}`")
        ) from error
