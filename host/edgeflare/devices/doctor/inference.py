"""Small inferences: runtime, time, whether answers repeat, equal this machine's, and are exact."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.inventory import LOCAL, Device
from edgeflare.devices.provisioning.probe import Probe, probe, require
from edgeflare.devices.provisioning.upload import Provisioned, provision
from edgeflare.devices.runtimes import BY_EXTENSION, RuntimeName, calibration_file, options_of
from edgeflare.devices.session.agent_link import AgentLink, Limits
from edgeflare.devices.session.session import DeviceSession
from edgeflare.devices.transports.base import Transport
from edgeflare.devices.transports.local import LocalTransport
from edgeflare.errors import DeviceError, EdgeFlareError
from edgeflare_agent.image_spec import InputSpec, TensorInfo

_DEMO = Path(__file__).resolve().parents[2] / "assets" / "demo"
_DEMO_MODELS = {"tflite": "deployed.tflite"}
_INT8_PRODUCTS = _DEMO.parent / "checks" / "int8_products.onnx"
_EXACT_PRODUCT = 255 * 127
_REPEATED, _LOADS = 100, 3
_LONG_S = 5.0
_USUAL_SIDE = 224
_USUAL_SAMPLES = 16000
_CLOSE = 1e-5
_OF_A_MODEL = {"calibration", "input_shape", "precision"}


@dataclass(frozen=True)
class InferenceResult:
    """The raw first output of a model for one input, and the seconds of each of several runs.

    `effect` is the runtime in effect, as the agent describes it; `output` describes the output.
    `changed` says which of the other inferences, or of the other loads of the model, gave another
    answer; "" for none.
    """

    effect: Mapping[str, Any]
    output: TensorInfo
    values: NDArray[Any] = field(repr=False)
    seconds: tuple[float, ...]
    changed: str = ""

    @property
    def runtime(self) -> str:
        """Package, version and delegate or providers, for people."""
        return f"{self.effect.get('package')} {self.effect.get('version')}, {self.accelerated_by}"

    @property
    def accelerated_by(self) -> str:
        """The delegate or the execution providers in effect, for people."""
        providers = self.effect.get("providers")
        if providers and "nodes" in self.effect:
            nodes = self.effect["nodes"]
            if not isinstance(nodes, Mapping):
                return f"{', '.join(providers)}, which of them runs a node isn't told"
            return ", ".join(f"{one} ({nodes.get(one, 0)} nodes)" for one in providers)
        if providers:
            return ", ".join(providers)
        if "delegate" not in self.effect:
            return "by itself"
        return str(self.effect["delegate"] or "no delegate")

    @property
    def median_ms(self) -> float:
        """Milliseconds on the device, the first try left out where there are more."""
        return 1000 * statistics.median(self.seconds[1:] or self.seconds)


@dataclass(frozen=True)
class Trial:
    """One model on one runtime: what the device and this machine answered, or why they did not."""

    runtime: RuntimeName
    model: Path
    on_device: InferenceResult | EdgeFlareError
    on_host: InferenceResult | EdgeFlareError | None
    """None: the device is this machine itself."""


def demo_model(runtime: RuntimeName) -> Path:
    """Return the small model that comes with EdgeFlare and this runtime loads."""
    return _DEMO / _DEMO_MODELS.get(runtime, "original.onnx")


def try_model(
    link: Callable[[], AgentLink],
    transport: Transport,
    probed: Probe,
    device: Device,
    runtime: RuntimeName,
    model: Path | None,
) -> Trial:
    """Run a model (by default the small one) on the agent of `link` and on this machine.

    This machine uses the runtime of the file's extension: an ``.onnx`` on TensorRT is compared with
    onnxruntime.
    """
    file = model or demo_model(runtime)
    options = _options(device, runtime, own_model=model is not None)

    def answer_on_device() -> InferenceResult:
        calibration = calibration_file(runtime, options)
        on_device = provision(transport, probed, device, file, calibration, runtime=runtime)
        data = {} if on_device.data is None else {"calibration": on_device.data[0]}
        return _answer(link(), on_device, runtime, {**options, **data})

    on_device = _result_or_error(answer_on_device)
    if isinstance(on_device, EdgeFlareError) or device.is_this_interpreter:
        return Trial(runtime, file, on_device, None)
    usual = BY_EXTENSION.get(file.suffix.lower(), runtime)
    return Trial(runtime, file, on_device, _result_or_error(lambda: _answer_on_host(usual, file)))


def open_link(transport: Transport, agent: str, probed: Probe, device: Device) -> AgentLink:
    """Start the agent at this path. Raises what `AgentLink.open` raises."""
    limits = Limits(None, device.heartbeat_s, device.timeout_s)
    return AgentLink.open(transport, agent, probed.root, limits)


def difference(on_device: InferenceResult, on_host: InferenceResult) -> float:
    """Return the largest absolute difference of two raw outputs; infinite if one is not finite."""
    first, second = (np.asarray(one.values, dtype=np.float64) for one in (on_device, on_host))
    if first.shape != second.shape:
        return float("inf")
    unlike = ~((first == second) | (np.isnan(first) & np.isnan(second)))
    apart = np.abs(first[unlike] - second[unlike])
    return float(np.max(apart, initial=0.0)) if np.isfinite(apart).all() else float("inf")


def answers_equal(on_device: InferenceResult, on_host: InferenceResult) -> bool:
    """Whether two answers are equal: exactly where the output is quantised, else to rounding."""
    apart = difference(on_device, on_host)
    if (
        apart == 0
        or on_device.output.quantization is not None
        or on_device.values.dtype.kind in "iu"
    ):
        return apart == 0
    values = on_host.values.astype(np.float64)
    largest = np.max(np.abs(values[np.isfinite(values)]), initial=1.0)
    return bool(apart <= _CLOSE * largest)


def _answer(
    link: AgentLink, on_device: Provisioned, runtime: RuntimeName, options: Mapping[str, Any]
) -> InferenceResult:
    values: list[NDArray[Any]] = []
    seconds: list[float] = []
    started, changed = time.monotonic(), ""
    for load in range(1, _LOADS + 1):
        session = DeviceSession.load(link, on_device, runtime, options)
        output = session.model.outputs[0]
        spec = plain_input(session.model.inputs[0])
        session.configure(spec, output.name)
        sample = _ramp(spec)
        for number in range(_REPEATED if load == 1 else 1):
            if number and time.monotonic() - started > _LONG_S:
                break
            reply = session.submit([sample]).result()
            found = reply.outputs[0]
            assert isinstance(found, np.ndarray)  # noqa: S101 - one output, and no decoder
            values = values or [found]
            seconds += reply.seconds
            if not changed and found.tobytes() != values[0].tobytes():
                changed = f"load {load} of the model" if load > 1 else f"inference {number + 1}"
    return InferenceResult(session.model.runtime, output, values[0], tuple(seconds), changed)


def products_saturate(link: AgentLink, transport: Transport, probed: Probe, device: Device) -> bool:
    """Whether onnxruntime on the device gives sums of products of unsigned and signed bytes wrong.

    On x86-64 processors without VNNI two such products are summed in 16 bits. Raises DeviceError
    and ModelError.
    """
    on_device = provision(transport, probed, device, _INT8_PRODUCTS, runtime="onnx")
    session = DeviceSession.load(link, on_device, "onnx", {})
    tensor = session.model.inputs[0]
    shape = tuple(axis or 1 for axis in tensor.shape)
    size = (1, prod(shape))
    session.configure(InputSpec(shape, tensor.dtype, size, 1), session.model.outputs[0].name)
    sums = session.submit([np.full((*size, 1), 255, np.uint8)]).result().outputs[0]
    return bool(np.any(np.asarray(sums) != _EXACT_PRODUCT * size[1]))


def _answer_on_host(runtime: RuntimeName, model: Path) -> InferenceResult:
    try:
        folder = TemporaryDirectory(ignore_cleanup_errors=True)
    except OSError as error:
        raise DeviceError(f"no temporary folder can be made here: {error.strerror}") from error
    with folder as cache:
        on_host = LOCAL.model_copy(update={"name": "this machine", "cache": cache})
        transport = LocalTransport(on_host.name, on_host.python)
        probed = probe(transport, on_host)
        require(probed, runtime)
        on_device = provision(transport, probed, on_host, model, runtime=runtime)
        link = open_link(transport, on_device.agent_path, probed, on_host)
        try:
            return _answer(link, on_device, runtime, {})
        finally:
            link.close()


def _result_or_error(answer: Callable[[], InferenceResult]) -> InferenceResult | EdgeFlareError:
    try:
        return answer()
    except EdgeFlareError as error:
        return error


def plain_input(tensor: TensorInfo) -> InputSpec:
    """Return a spec that fills any input, whatever it means, with pixels / 255.

    An open first axis is a batch of 1, another one has a usual image's length; with no more axes
    than the batch's and one other the input may be a clip of any length, and has a second's.
    """
    length = _USUAL_SAMPLES if len(tensor.shape) == 2 else _USUAL_SIDE
    usual = (1, *(length for _ in tensor.shape[1:]))
    shape = tuple(usual[place] if axis is None else axis for place, axis in enumerate(tensor.shape))
    return InputSpec(
        shape=shape,
        dtype=tensor.dtype,
        size=(1, prod(shape)),
        channels=1,
        scale=(1.0, 255.0),
        quantization=tensor.quantization,
    )


def _ramp(spec: InputSpec) -> NDArray[np.uint8]:
    """Return greys from black to white, uint8 [1, n, 1]."""
    return np.linspace(0, 255, spec.size[1]).astype(np.uint8).reshape(1, -1, 1)


def _options(device: Device, runtime: RuntimeName, *, own_model: bool) -> dict[str, Any]:
    """Return the device's options, without those of another runtime or of the user's own model.

    EdgeFlare's own small models weren't made for the device's accelerator: the CPU may run them.
    """
    known = set(options_of(runtime))
    dropped = set() if own_model else _OF_A_MODEL
    if device.runtime != runtime:
        dropped = dropped | (set(device.options) - known)
    more = {} if own_model else dict.fromkeys({"allow_fallback"} & known, True)
    return {**{name: one for name, one in device.options.items() if name not in dropped}, **more}
