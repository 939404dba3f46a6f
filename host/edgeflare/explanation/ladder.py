"""The ladder of configurations between the original model and the deployed one on its device.

Each rung adds one thing to the rung before it. The original model answers the same on all of them.
"""

import filecmp
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.campaign.control import control_model
from edgeflare.campaign.pair.saturation import saturates
from edgeflare.campaign.pair.triage import runtime_here
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.fleet import FleetConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.devices import LOCAL, Device, runtime_for
from edgeflare.devices.runtimes import options_of
from edgeflare.errors import UsageError
from edgeflare.explanation.results import DEVICE, EXACT, FindingCause, Remark
from edgeflare.models import VALUE_FIELDS, InputOptions, InputSpec
from edgeflare.models.tensors import Grid, is_float_file, plainest_kernels
from edgeflare.store import Store

_ACCELERATOR = ("delegate", "delegate_options", "providers", "provider_options", "allow_fallback")
_OUTSIDE = 0.1
"""Values beyond the range of an input, as a share of it, that calibration explains."""


@dataclass(frozen=True, eq=False)
class Rung:
    """One configuration of the ladder.

    `kind` is that of the cause of a finding that deviates here and on all later rungs, and not before;
    of a question to the device, of one that deviates there, or doesn't, as it `tells`. `deployed` is the model in the place of the deployed one; `file` names its file where that is
    neither the original's nor the deployed model's.
    `asks_device`: the campaign's devices run it; else this machine does. `runs_file`: the first
    rung that runs the deployed file.
    """

    name: str
    kind: FindingCause
    deployed: ModelConfig
    asks_device: bool = False
    runs_file: bool = False
    file: str = ""
    tells: bool | None = None

    def configure(self, base: CampaignConfig, out: Path) -> CampaignConfig:
        """Return the configuration of a replay on this rung; `base` is the campaign's."""
        update: dict[str, Any] = {"deployed": self.deployed, "out": out}
        if not self.asks_device:
            update |= {"devices": (LOCAL.name,), "python": None, "inventory": None}
            update |= {"fleet": FleetConfig(), "concurrency": None, "one_trip": False}
        return base.model_copy(update=update)


def ladder_of(
    config: CampaignConfig,
    store: Store,
    devices: Sequence[Device],
    float_model: Path | None = None,
) -> tuple[Sequence[Rung], Sequence[Rung], Sequence[Remark]]:
    """Return the rungs in order, the device's last; further ones there; and what can't be told apart.

    A finding of the device's comes of the kind of the first further rung that tells (see `charge`). The `store` of the
    campaign has what is known of both models.

    `float_model` is a file of the original before it was compressed, in the deployed one's format.
    Raises UsageError where the runtime of a file isn't known, or `float_model` can't be that.
    """
    models = store.models
    notices: list[Remark] = []
    name = str(models["deployed"]["runtime"]["name"])
    is_here = all(device.transport == "local" for device in devices)
    rungs = []
    on_host, why = runtime_here(config.deployed.path, name)
    if float_model is not None:
        _check_float_model(float_model, config.deployed.path, on_host)
    file_kind = "compression" if float_model is not None else _kind_of_file(config, models, on_host)
    try:
        own = control_model(config)
        rungs.append(Rung("control", "rounding", own))
    except UsageError as error:
        notices.append(Remark("no control", {"cause": file_kind, "why": str(error)}))
    if prepared := _prepared(config.original, models, notices):
        rungs.append(Rung("preprocessing", "preprocessing", prepared))
    if config.deployed.repair is not None:
        notices.append(Remark("repaired", {"cause": file_kind}))
    if on_host is None:
        notices.append(Remark("no runtime here", {"file": config.deployed.path.name, "why": why}))
    else:
        rungs += _on_host(config, on_host, float_model, file_kind, is_here=is_here)
        if (
            file_kind == "compression"
            and float_model is None
            and models["original"]["runtime"]["name"] != on_host
        ):
            notices.append(Remark("no float model"))
    options = _device_options(config, devices)
    rungs.append(Rung(DEVICE, _last(on_host, is_here=is_here), config.deployed, True))
    if is_here and on_host is not None:
        notices.append(Remark("device is here", {"cause": file_kind}))
    questions = (
        _questions(config.deployed, name, options, store, is_here=is_here) if on_host else []
    )
    return rungs, questions, notices


def _last(on_host: str | None, *, is_here: bool) -> FindingCause:
    if on_host is None:
        return "compression"
    return "kernels" if is_here else "device"


def _kind_of_file(
    config: CampaignConfig, models: Mapping[str, Any], on_host: str | None
) -> FindingCause:
    """Return what a difference between the two files is: between two float files a conversion."""
    if on_host is None:
        return "compression"
    files = (
        (config.original.path, str(models["original"]["runtime"]["name"])),
        (config.deployed.path, on_host),
    )
    return "conversion" if all(is_float_file(*file) for file in files) else "compression"


def _on_host(
    config: CampaignConfig,
    runtime: str,
    float_model: Path | None,
    file_kind: FindingCause,
    *,
    is_here: bool,
) -> list[Rung]:
    """Return the rungs that this machine runs between the original and the device."""
    deployed = config.deployed
    plain = plainest_kernels(deployed.path, runtime)
    threads = {"threads": deployed.options["threads"]} if "threads" in deployed.options else {}

    def with_options(model: ModelConfig, options: Mapping[str, Any]) -> ModelConfig:
        given = {key: value for key, value in options.items() if key in options_of(runtime)}
        return model.model_copy(update={"runtime": runtime, "options": {**threads, **given}})

    rungs = []
    if float_model is not None:
        other = deployed.model_copy(update={"path": float_model, "repair": None})
        in_float = with_options(other, plain)
        rungs.append(Rung("conversion", "conversion", in_float, file=float_model.name))
    rungs.append(Rung(file_kind, file_kind, with_options(deployed, plain), runs_file=True))
    if not is_here:
        kept = {key: one for key, one in deployed.options.items() if key not in _ACCELERATOR}
        if isinstance(deployed.options.get("delegate"), bool):
            kept["delegate"] = deployed.options["delegate"]
        exact = {"exact_int8": True} if runtime == "onnx" else {}
        rungs.append(Rung("kernels", "kernels", with_options(deployed, {**kept, **exact})))
    return rungs


def _questions(
    deployed: ModelConfig,
    runtime: str,
    options: Mapping[str, Any],
    store: Store,
    *,
    is_here: bool,
) -> list[Rung]:
    """Return what the device is asked about findings of the last rung, in order.

    `options` are those in effect on the device, of which those of the campaign are a part.
    """
    found = []

    def asked(name: str, kind: FindingCause, tells: bool, changed: Mapping[str, Any]) -> None:
        kept = {key: one for key, one in options.items() if key in options_of(runtime)}
        model = deployed.model_copy(update={"options": {**kept, **changed}})
        found.append(Rung(name, kind, model, True, tells=tells))

    stated = {key for key in _ACCELERATOR if options.get(key) not in (None, True, False, [], {})}
    plain = plainest_kernels(deployed.path, runtime)
    without: dict[str, Any] = {}
    if stated:
        without = {"delegate": True, "delegate_options": {}} if runtime == "tflite" else {}
        without |= (
            {"providers": ["CPUExecutionProvider"], "provider_options": {}}
            if runtime == "onnx"
            else {}
        )
    if plain and not is_here:
        asked("device-plain", "hardware", True, {**without, **plain})
    if stated and without:
        asked("device-cpu", "accelerator", False, without)
    in_effect = store.models["deployed"]["runtime"]
    if any(saturates(in_effect, fingerprint) for fingerprint in store.fingerprints().values()):
        asked(EXACT, "hardware", False, {"exact_int8": True})
    return found


def _device_options(config: CampaignConfig, devices: Sequence[Device]) -> dict[str, Any]:
    """Return the options that the devices run the deployed model with: theirs, then its own."""
    common: dict[str, Any] = {}
    for device in devices:
        common |= device.options
    return {**common, **config.deployed.options}


def _check_float_model(path: Path, deployed: Path, runtime: str | None) -> None:
    """Raise UsageError unless it is another file than the deployed one, of the same runtime."""
    if not path.is_file():
        raise UsageError(f"there is no model file {path}")
    if filecmp.cmp(path, deployed, shallow=False):
        raise UsageError(
            f"--float-model {path} is the deployed model itself: name the model before it was "
            "compressed"
        )
    try:
        is_like = path.suffix.lower() == deployed.suffix.lower() or runtime_for(path) == runtime
    except UsageError:
        is_like = False
    if runtime is not None and not is_like:
        raise UsageError(
            f"--float-model {path} is no file for {runtime}, which runs {deployed.name} here: name "
            "the model before it was compressed in that format"
        )


def _clipped(spec: InputSpec) -> tuple[list[Remark], tuple[float, float] | None]:
    """Return that a deployed model's input clips what its preprocessing makes, and its range.

    Nothing and None where it doesn't. What is made of an image's levels, 0 to 255, fits the range of an
    input of integers that is prepared as it was calibrated.
    """
    if spec.quantization is None:
        return [], None
    numerator, denominator = spec.scale
    mean, std = np.broadcast_arrays(spec.mean, spec.std)
    made = (np.array([[0.0], [255.0]]) * numerator / denominator - mean) / std
    least, largest = Grid(*spec.quantization, spec.dtype).range
    outside = max(least - float(made.min()), float(made.max()) - largest)
    if outside <= _OUTSIDE * (largest - least):
        return [], None
    ranges = {"made_from": float(made.min()), "made_to": float(made.max())}
    holds = {"holds_from": float(least), "holds_to": float(largest)}
    return [Remark("out of range", {**ranges, **holds})], (least, largest)


def _prepared(
    original: ModelConfig, models: Mapping[str, Any], notices: list[Remark]
) -> ModelConfig | None:
    """Return the original with the deployed model's preprocessing; None where that is its own.

    It is given no values that the deployed model's input can't hold; adds to `notices` where that
    clips much.
    """
    specs = [models[which]["input"] for which in ("original", "deployed")]
    if any("size" not in spec for spec in specs):  # of audio
        return None
    own, other = map(InputSpec.from_json, specs)
    clips, clip = _clipped(other)
    notices += clips
    other = other._replace(clip=clip or other.clip)
    names = [*VALUE_FIELDS, *(["resize"] if other.resize is not None else [])]
    if all(getattr(own, key) == getattr(other, key) for key in names):
        return None
    numerator, denominator = other.scale
    values = {
        **{key: getattr(other, key) for key in names},
        "scale": f"{numerator!r}/{denominator!r}",
    }
    stated = original.input.model_dump(exclude_none=True)
    return original.model_copy(update={"input": InputOptions.model_validate({**stated, **values})})
