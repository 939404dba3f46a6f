# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .doctor.check import CheckLine as CheckLine
from .equivalence import check_equivalent as check_equivalent
from .fingerprints import (
    fingerprint as fingerprint,
    fingerprint_digest as fingerprint_digest,
)
from .inventory import (
    Device as Device,
    LOCAL as LOCAL,
    LabgridPlace as LabgridPlace,
    board_stopped as board_stopped,
    device_from_url as device_from_url,
    load_inventory as load_inventory,
    resolve_device as resolve_device,
)
from .open import (
    check_device as check_device,
    device_status as device_status,
    held_place as held_place,
    open_device as open_device,
    prune_device as prune_device,
)
from .provisioning.upload import PruneReport as PruneReport
from .runtimes import DeviceOptions as DeviceOptions, runtime_for as runtime_for
from .session.agent_link import Limits as Limits
from .session.device_report import DeviceReport as DeviceReport, LeaseHeld as LeaseHeld
from .session.reconnecting import ReconnectingSession as ReconnectingSession
from .session.replies import LoadedModel as LoadedModel, Reply as Reply
from .session.session import DeviceSession as DeviceSession, Lease as Lease
from .session.status import DeviceState as DeviceState, DeviceStatus as DeviceStatus
from .telemetry import DeviceMinute as DeviceMinute, Health as Health
from .transports.base import (
    Completed as Completed,
    Connect as Connect,
    ConnectOptions as ConnectOptions,
    PlaceWaits as PlaceWaits,
    Prompt as Prompt,
    Stream as Stream,
    Transport as Transport,
    stop_waiting_for_places as stop_waiting_for_places,
    waiting_for_place as waiting_for_place,
)
from .open import connect as connect
from .transports.ssh.trust import (
    HostKey as HostKey,
    fetch_host_key as fetch_host_key,
    trust_host_key as trust_host_key,
)
