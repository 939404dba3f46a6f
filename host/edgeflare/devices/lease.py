"""Who asks for a device: what the agent keeps, so that two campaigns never share it unawares."""

from typing import Any, NamedTuple


class Lease(NamedTuple):
    """A claim on a device, held by the agent there for as long as it lives.

    `holder` is the campaign: another holder is refused unless both share; `session` one use of one
    device by it: an older agent of the same holder and session is ended first. `about` is for people,
    such as ``campaign night on laptop``.
    """

    holder: str
    session: str
    about: str

    def to_json(self, share: bool) -> dict[str, Any]:
        """Return the header of the LEASE frame."""
        return {**self._asdict(), "share": share}
