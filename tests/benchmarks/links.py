"""The ways from host to device that the benchmarks compare: local, SSH over loopback, SSH far away."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from edgeflare.devices import Device
from edgeflare.testing import Relay

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
from ssh_servers import SSHD, known_line, start_sshd

LINKS = ("local", "SSH loopback", "SSH + 20 ms")
ROUND_TRIP_S = 0.020


@contextmanager
def devices(names: tuple[str, ...] = LINKS) -> Iterator[dict[str, Device]]:
    """Give this machine as a device behind each link; SSH only where OpenSSH's sshd is installed.

    Agents and models go to a temporary folder.
    """
    with TemporaryDirectory(prefix="edgeflare-benchmark-") as folder:
        ways = {"local": Device(name="local", transport="local", cache=folder)}
        if SSHD is None:
            print("note: no sshd here, so only the local link is measured", file=sys.stderr)
            yield {name: way for name, way in ways.items() if name in names}
            return
        with start_sshd() as server:
            each_way = ROUND_TRIP_S / 2
            with Relay(
                server.host, server.port, to_server_s=each_way, to_client_s=each_way
            ) as relay:
                known = server.folder / "known_hosts_far"
                known.write_text(known_line(relay.host, relay.port, server.host_key))
                ways["SSH loopback"] = server.device(name="SSH loopback", cache=folder)
                ways["SSH + 20 ms"] = server.device(
                    name="SSH + 20 ms", port=relay.port, known_hosts=known, cache=folder
                )
                yield {name: way for name, way in ways.items() if name in names}
