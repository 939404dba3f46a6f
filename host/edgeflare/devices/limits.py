"""What one agent may take: requests, time and bytes."""

from typing import NamedTuple

from edgeflare_agent.wire import DEFAULT_MAX_BODY


class Limits(NamedTuple):
    """Requests under way (None: as many as keep the device busy), seconds of silence, seconds for one
    inference, and bytes of a frame's body; all at most."""

    window: int | None = None
    heartbeat_s: float = 20.0
    timeout_s: float = 60.0
    max_body: int = DEFAULT_MAX_BODY
