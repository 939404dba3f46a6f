"""The ways from host to device that the benchmarks compare: local, SSH over loopback, SSH far away."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from edgeflare.devices import Device
from edgeflare_lab.testing import Relay

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


def write_inventory(path: Path, ways: dict[str, Device]) -> dict[str, str]:
    """Write the SSH devices to an inventory; return the name of each link's device."""
    names, lines = {}, []
    for index, (link, device) in enumerate(ways.items()):
        names[link] = "local" if device.transport == "local" else f"board{index}"
        if device.transport != "local":
            stated = device.model_dump(mode="json", exclude_unset=True, exclude={"name"})
            lines.append(f"[devices.{names[link]}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in stated.items()]
    path.write_text("\n".join(lines) + "\n")
    return names
