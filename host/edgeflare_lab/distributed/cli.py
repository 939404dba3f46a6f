"""The command ``worker``, and the cluster of ``--dask``."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from edgeflare._internal.files import is_open_to_others
from edgeflare._internal.flags import Flag
from edgeflare.cli.options import with_settings
from edgeflare.cli.settings import TlsSettings
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare_lab.distributed import DaskCluster


def dask_cluster(
    address: str, *, ca_file: Path | None, cert: Path | None, key: Path | None, insecure: bool
) -> "DaskCluster":
    """Return the cluster at this address of a Dask scheduler. Raises what `DaskCluster` raises."""
    from edgeflare_lab.distributed import DaskCluster, Tls, silence_dask

    _say_exposed(key)
    silence_dask()
    return DaskCluster(address, tls=Tls(ca_file, cert, key), insecure=insecure)


def _say_exposed(key: Path | None) -> None:
    """Say that others may read a private key; where it is none `Tls.check` tells."""
    if key is not None and key.is_file() and is_open_to_others(key):
        command = shlex.join(["chmod", "600", str(key)])
        echo_err(f"note: others on this machine may read the private key {key}: `{command}`")


class WorkerSettings(TlsSettings):
    """``worker``."""

    scheduler: Annotated[str, Flag("scheduler")] = Field(
        description="The Dask scheduler: tls://HOST:8786 (dask scheduler)."
    )
    inventory: Annotated[Path | None, Flag("--inventory")] = Field(
        None, description="The inventory of this host's devices (TOML)."
    )
    devices: Annotated[tuple[str, ...], Flag("--device", metavar="DEVICE")] = Field(
        (), description="Offer only this device; may be repeated."
    )
    name: Annotated[str | None, Flag("--name")] = Field(
        None, description="The worker's name, unlike any other's; by default the host's."
    )


@with_settings(lambda: WorkerSettings, "worker")
def worker(settings: WorkerSettings) -> None:
    """Offer this host's devices to campaigns that run elsewhere (edgeflare run --dask)."""
    from edgeflare_lab.distributed import Tls, run_worker, silence_dask

    silence_dask()
    _say_exposed(settings.tls_key)
    run_worker(
        settings.scheduler,
        inventory=settings.inventory,
        devices=settings.devices,
        name=settings.name,
        tls=Tls(settings.tls_ca_file, settings.tls_cert, settings.tls_key),
        insecure=settings.insecure,
        on_start=echo_err,
    )
