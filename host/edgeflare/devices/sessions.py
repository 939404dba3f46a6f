"""What a device over many sessions needs of each of them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from edgeflare.devices.background import Task
from edgeflare.devices.health import Health
from edgeflare.devices.replies import LoadedModel, Reply
from edgeflare.errors import EdgeFlareError
from edgeflare.types import Sample
from edgeflare_agent.audio_spec import Spec
from edgeflare_agent.decoding import RawOutput


class Configuration(NamedTuple):
    """What `Session.configure` takes."""

    spec: Spec
    output: str | None
    decoder: Mapping[str, Any] | None


class Session(Protocol):
    """What is needed of a DeviceSession."""

    name: str
    device: dict[str, Any]
    model: LoadedModel
    fingerprint: dict[str, Any]

    @property
    def window(self) -> int:
        """Requests that keep the device busy right now."""
        ...

    @property
    def in_flight(self) -> int:
        """Requests on the wire or at the agent."""
        ...

    @property
    def failure(self) -> EdgeFlareError | None:
        """Why the link ended; None while it lives."""
        ...

    @property
    def health(self) -> Health:
        """What the agent said last of itself."""
        ...

    def on_failure(self, callback: Callable[[EdgeFlareError], None]) -> None:
        """Have this called once when the link ends by itself, at once if it has."""
        ...

    def configure(
        self, spec: Spec, output: str | None, decoder: Mapping[str, Any] | None = None
    ) -> None:
        """Say how samples become the input, which output is wanted, and what makes text of it."""
        ...

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply[RawOutput]]":
        """Queue raw samples without waiting for anything."""
        ...

    def close(self) -> None:
        """End the agent; may take seconds."""
        ...


def closing(session: Session) -> Task:
    """End a session in the background; how it ends is of no interest any more."""
    with suppress(EdgeFlareError, OSError):
        session.close()
    yield from ()
