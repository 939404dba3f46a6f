"""A deployed model on its device, ready to answer."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from edgeflare._internal.records import JsonRecord
from edgeflare.devices.fingerprints import fingerprint
from edgeflare.devices.inventory import CompressionMode
from edgeflare.devices.provisioning.upload import Provisioned
from edgeflare.devices.session.agent_link import AgentLink, Limits
from edgeflare.devices.session.flow_control import Compression, measure_bandwidth
from edgeflare.devices.session.replies import (
    LoadedModel,
    Reply,
    ReplyReader,
    read_empty,
    read_memory,
    read_model,
)
from edgeflare.devices.telemetry import Health
from edgeflare.devices.transports.base import Transport
from edgeflare.errors import EdgeFlareError
from edgeflare.types import Query, split_rows
from edgeflare_agent.audio_spec import Spec
from edgeflare_agent.configuration.fixed_inputs import ONE_INPUT, GivenInputs, configuration_of
from edgeflare_agent.decoding import RawOutput
from edgeflare_agent.repair import Repair
from edgeflare_agent.wire import Kind


@dataclass(frozen=True)
class Lease(JsonRecord):
    """A claim on a device, held by the agent there for as long as it lives.

    `holder` is the campaign: another holder is refused unless both share; `session` one use of one
    device by it: an older agent of the same holder and session is ended first. `about` is for
    people, such as ``campaign night on laptop``. `share`: other leases that share are allowed at the
    same time.
    """

    holder: str
    session: str
    about: str
    share: bool = False


_FIRST_PINGS = 5


class DeviceSession:
    """One loaded model on one device; safe to use from several threads.

    `device` is the agent's description of the device (board, cpu, kernel, ..., with ``python`` and
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
        self._reader = ReplyReader(model, None)
        self._rows = 0
        self.fingerprint = fingerprint(self.device, model.runtime)

    @classmethod
    def open(
        cls,
        transport: Transport,
        provisioned: Provisioned,
        runtime: str,
        options: Mapping[str, Any],
        *,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        compression: CompressionMode = "off",
        lease: Lease | None = None,
        owns_transport: bool = False,
    ) -> "DeviceSession":
        """Start the agent, take the lease if there is one, and load the model.

        The session fails when nothing comes from the agent for the limits' `heartbeat_s`, or when it
        works for longer than `timeout_s` on the start, on loading or on one inference. With
        `compression` other than "off" the link's bandwidth is measured; "auto" packs where that
        gains time. `owns_transport`: `close` closes the transport, too. Raises AgentDiedError, DeviceProtocolError, DeviceTimeoutError,
        DeviceBusyError, DeviceRuntimeError, ModelError, UsageError and what the transport raises;
        the transport is open then.
        """
        link = AgentLink.open(transport, provisioned.agent_path, provisioned.root, limits)
        try:
            if lease is not None:
                link.request(Kind.LEASE, lease.to_json(), read=read_empty).result()
            _measure(link, compression)
            owned = transport if owns_transport else None
            return cls.load(link, provisioned, runtime, options, owned)
        except BaseException:
            link.close()
            raise

    @classmethod
    def load(
        cls,
        link: AgentLink,
        provisioned: Provisioned,
        runtime: str,
        options: Mapping[str, Any],
        transport: Transport | None = None,
    ) -> "DeviceSession":
        """Load a model into an agent that runs already, instead of the one that it may have.

        `transport`: what `close` closes with the link. Raises what `open` raises while loading.
        """
        link.user_paths.update(provisioned.user_paths)
        header = {"model": provisioned.model_name, "runtime": runtime, "options": dict(options)}
        loaded = link.request(Kind.LOAD, header, read=read_model)
        memory = link.request(Kind.STATUS, {}, read=read_memory)
        model = loaded.result()
        link.adapt_window(memory=memory.result())
        link.ping()  # so that health is known before the first heartbeat
        return cls(link, model, transport)

    @property
    def in_flight(self) -> int:
        """Requests on the wire or at the agent."""
        return self._link.in_flight

    @property
    def window(self) -> int:
        """Requests that keep the device busy right now."""
        return self._link.window

    @property
    def health(self) -> Health:
        """The device's health, by its last heartbeat."""
        return self._link.health

    @property
    def failure(self) -> EdgeFlareError | None:
        """Why the session ended; None while it lives. Errors of single requests don't end it."""
        return self._link.failure

    def on_failure(self, callback: Callable[[EdgeFlareError], None]) -> None:
        """Register a callback, called once, for the session's end by itself, not by `close`.

        It is called from a thread of the session, before the pending futures fail; at once, from
        this thread, where the session has ended already.
        """
        self._link.on_failure(callback)

    def on_health(self, callback: Callable[[Health], None]) -> None:
        """Register a callback for the health: called now, then by a thread after each heartbeat."""
        self._link.on_health(callback)

    def configure(
        self,
        spec: Spec,
        output: str | Sequence[str] | None,
        decoder: Mapping[str, Any] | None = None,
        repair: Repair | None = None,
        *,
        keep: Mapping[str, Any] | None = None,
        given: GivenInputs = ONE_INPUT,
    ) -> None:
        """Set how samples become the input, and which output is returned (None: the only one).

        Of a sequence of names each sample's answer is a tuple of arrays, in that order. `decoder`
        makes text of the outputs, on the device: JSON as `edgeflare_agent.decoding` has it; with
        None for a vocabulary it is the one in the model's file. `repair` replaces answers there.
        `keep` {"count", "scores", "axis", "rows"}: of the anchors of a detector's outputs only
        `count` return, those with the highest scores, as `edgeflare_agent.configuration.reduction.Reduction` has
        it. `given`: the input that samples become, and what the others are given. Holds for what is
        submitted afterwards. Raises UsageError where anything doesn't fit the model, ModelError
        where the outputs don't fit the decoder, and the errors of a failed session.
        """
        header, fixed = configuration_of(spec, output, decoder, keep, given)
        arrays: list[NDArray[Any]] = []
        if repair is not None:
            header["repair"], arrays = repair.about, repair.arrays
        self._link.request(Kind.CONFIGURE, header, [*arrays, *fixed], read=read_empty).result()
        self._rows = given.rows
        self._reader = ReplyReader(
            self.model, output, decoded=decoder is not None, repair=repair, keep=keep
        )

    def submit(self, samples: Sequence[Query]) -> "Future[Reply[RawOutput]]":
        """Queue raw samples, inferred one by one in this order; returns without waiting.

        The future's callbacks run in the session's reader thread: they must be short, and wait for
        no other reply. Its errors: UsageError, DeviceError and all of its kinds;
        DeviceProtocolError for outputs of other size or dtype than the model was announced with.
        The samples must not change until it is done. Raises UsageError for more bytes than one
        request may have.
        """
        count = len(samples)
        arrays, header = split_rows(samples, self._rows)
        return self._link.request(
            Kind.INFER,
            header,
            arrays,
            read=partial(self._reader.read, count=count),
            allowance_s=self._link.limits.timeout_s * max(1, count),
            most_bytes=self._reader.most_bytes * count,
        )

    def ping(self) -> float:
        """Return one round trip to the agent and back, in seconds; also while it infers."""
        return self._link.round_trip()

    def close(self) -> None:
        """End the agent; what is pending fails. Safe to repeat."""
        self._link.close()
        if self._transport is not None:
            self._transport.close()


def _measure(link: AgentLink, compression: CompressionMode) -> None:
    """Measure the idle link's round trip and, where compression is allowed, its bandwidth."""
    round_trip = min(link.round_trip() for _ in range(_FIRST_PINGS))
    if compression == "off":
        return
    bandwidth = measure_bandwidth(link.round_trip, round_trip)
    link.adapt_window(bytes_per_s=bandwidth)
    link.compression = Compression(compression, bandwidth)
