"""A deployed model on its device, ready to answer."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from edgeflare.devices.agent_link import AgentLink, Limits
from edgeflare.devices.fingerprint import fingerprint
from edgeflare.devices.provision import Provisioned
from edgeflare.devices.transport import Transport
from edgeflare.types import Sample
from edgeflare_agent.spec import InputSpec, TensorInfo
from edgeflare_agent.wire import Frame, Kind


@dataclass(frozen=True)
class Reply:
    """The device's answer to one request, in the order of its samples.

    `outputs`: raw arrays of the configured output, not dequantised; `seconds`: the device's own time for
    preprocessing and inference of each.
    """

    outputs: list[NDArray[Any]]
    seconds: list[float]


@dataclass(frozen=True)
class LoadedModel:
    """The model as the device's runtime describes it; `runtime` is what is in effect, not what was asked."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    runtime: dict[str, Any]
    metadata: dict[str, str]


class DeviceSession:
    """One loaded model on one device; safe to use from several threads.

    `device` is what the agent says of the device (board, cpu, kernel, ..., with ``python`` and
    ``numpy``), `model` the loaded model, `fingerprint` what makes the device's results its own.
    """

    def __init__(self, link: AgentLink, model: LoadedModel, transport: Transport | None) -> None:
        self._link = link
        self._transport = transport
        self.name = link.name
        hello = link.hello
        self.device = {
            **hello["device"],
            "python": hello.get("python"),
            "numpy": hello.get("numpy"),
        }
        self.model = model
        self.fingerprint = fingerprint(self.device, model.runtime)

    @classmethod
    def open(
        cls,
        transport: Transport,
        provisioned: Provisioned,
        runtime: str,
        options: Mapping[str, Any],
        *,
        window: int = 16,
        heartbeat_s: float = 20.0,
        timeout_s: float = 60.0,
        owns_transport: bool = False,
    ) -> "DeviceSession":
        """Start the agent and load the model.

        At most `window` requests are under way at once. The session fails when nothing comes from the
        agent for `heartbeat_s`, or when it works for longer than `timeout_s` on the start, on loading
        or on one inference. `owns_transport`: `close` closes the transport, too.
        Raises AgentDiedError, DeviceProtocolError, DeviceTimeoutError, DeviceRuntimeError, ModelError,
        UsageError and what the transport raises; the transport is open then.
        """
        limits = Limits(window, heartbeat_s, timeout_s)
        link = AgentLink.open(transport, provisioned.agent_path, provisioned.root, limits)
        link.users_words[provisioned.model_path] = str(provisioned.source)
        header = {"model": provisioned.model_name, "runtime": runtime, "options": dict(options)}
        try:
            model = link.request(Kind.LOAD, header, read=_read_model).result()
            return cls(link, model, transport if owns_transport else None)
        except BaseException:
            link.close()
            raise

    @property
    def in_flight(self) -> int:
        """Requests on the wire or at the agent."""
        return self._link.in_flight

    @property
    def queued(self) -> int:
        """Requests that wait on the host for room in the window."""
        return self._link.queued

    def configure(self, spec: InputSpec, output: str | None) -> None:
        """Say how samples become the input, and which output is wanted (None: the only one).

        Holds for what is submitted afterwards. Raises UsageError and the errors of a failed session.
        """
        header = {"input": spec.to_json(), "output": output}
        self._link.request(Kind.CONFIGURE, header, read=_read_nothing).result()

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        """Queue raw samples, inferred one by one in this order; returns without waiting.

        The future's callbacks run in the session's reader thread: they must be short, and wait for no
        other reply. Its errors: UsageError, DeviceError and all of its kinds. The samples must not
        change until it is done. Raises UsageError for more bytes than one request may have.
        """
        count = len(samples)

        def read(frame: Frame) -> Reply:
            seconds = [float(one) for one in frame.header["seconds"]]
            if not len(seconds) == len(frame.arrays) == count:
                raise ValueError(f"{len(frame.arrays)} outputs for {count} samples")
            return Reply(list(frame.arrays), seconds)

        allowance = self._link.limits.timeout_s * max(1, count)
        return self._link.request(Kind.INFER, {}, samples, read=read, allowance_s=allowance)

    def ping(self) -> float:
        """Return one round trip to the agent and back, in seconds; also while it infers."""
        return self._link.ping().result()

    def close(self) -> None:
        """End the agent; what is pending fails. Safe to repeat."""
        self._link.close()
        if self._transport is not None:
            self._transport.close()


def _read_model(frame: Frame) -> LoadedModel:
    header = frame.header
    return LoadedModel(
        tuple(TensorInfo.from_json(one) for one in header["inputs"]),
        tuple(TensorInfo.from_json(one) for one in header["outputs"]),
        dict(header["runtime"]),
        dict(header["metadata"]),
    )


def _read_nothing(_: Frame) -> None:
    """Take a reply that has no content."""
