"""The status of a device and who uses it, without a lease and without a model."""

from edgeflare.devices.agent_link import AgentLink
from edgeflare.devices.connecting import Prompt, connect
from edgeflare.devices.device import Device
from edgeflare.devices.limits import Limits
from edgeflare.devices.probe import probe, require
from edgeflare.devices.provision import provision_agent
from edgeflare.devices.report import DeviceReport, ask_report


def device_status(device: Device, *, ask: Prompt | None = None) -> DeviceReport:
    """Return a device's health and who uses it, without disturbing them.

    Puts the agent there where it is missing. Raises DeviceError and its kinds, InventoryError.
    """
    transport = connect(device, ask)
    try:
        seen = probe(transport, device)
        require(seen)
        path = provision_agent(transport, seen, device)
        link = AgentLink.open(transport, path, seen.root, Limits())
        try:
            return ask_report(link)
        finally:
            link.close()
    finally:
        transport.close()
