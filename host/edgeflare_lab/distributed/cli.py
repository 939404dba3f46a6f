"""The command ``worker``, and the flags of commands that use workers."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from edgeflare._internal.files import is_open_to_others
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare.campaign import FleetConfig
    from edgeflare_lab.distributed import DaskCluster

_HOSTS = "Devices of several hosts"

Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Use the devices of the workers (`edgeflare worker`) at this Dask scheduler, "
        "tls://HOST:8786.",
        rich_help_panel=_HOSTS,
    ),
]
TlsCaFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The certificate of the authority that signed the scheduler's (PEM).",
        rich_help_panel=_HOSTS,
    ),
]
TlsCert = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="This host's certificate (PEM).", rich_help_panel=_HOSTS),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The key of this host's certificate (PEM).", rich_help_panel=_HOSTS
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Allow tcp:// to another host: any host that reaches the scheduler or a worker can run "
        "any code there.",
        rich_help_panel=_HOSTS,
    ),
]


class Scheduler(NamedTuple):
    """What the flags state of a Dask scheduler."""

    address: str | None
    ca_file: Path | None
    cert: Path | None
    key: Path | None
    insecure: bool

    @contextmanager
    def cluster(self, fleet: "FleetConfig") -> "Iterator[DaskCluster | None]":
        """Yield the cluster, for a campaign with these settings; None without --dask.

        Raises UsageError, UnreachableError.
        """
        if self.address is None:
            if self.insecure or any((self.ca_file, self.cert, self.key)):
                from edgeflare import UsageError

                raise UsageError("--insecure and the --tls flags are for --dask; add it")
            yield None
            return
        fleet.check_for_workers()
        _say_exposed(self.key)
        from edgeflare_lab.distributed import DaskCluster, Tls, silence_dask

        silence_dask()
        tls = Tls(self.ca_file, self.cert, self.key)
        with DaskCluster(self.address, tls=tls, insecure=self.insecure) as cluster:
            yield cluster


def _say_exposed(key: Path | None) -> None:
    """Say that others may read a private key; where it is none `Tls.check` tells."""
    if key is not None and key.is_file() and is_open_to_others(key):
        command = shlex.join(["chmod", "600", str(key)])
        echo_err(f"note: others on this machine may read the private key {key}: `{command}`")


def worker(
    scheduler: Annotated[
        str, typer.Argument(help="The Dask scheduler: tls://HOST:8786 (dask scheduler).")
    ],
    inventory: Annotated[
        Path | None, typer.Option(help="The inventory of this host's devices (TOML).")
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="DEVICE", help="Offer only this device; may be repeated."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="The worker's name, unlike any other's; by default the host's."),
    ] = None,
    tls_ca_file: TlsCaFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    insecure: Insecure = False,
) -> None:
    """Offer this host's devices to campaigns that run elsewhere (edgeflare run --dask)."""
    from edgeflare_lab.distributed import Tls, run_worker, silence_dask

    silence_dask()
    _say_exposed(tls_key)
    run_worker(
        scheduler,
        inventory=inventory,
        devices=device or (),
        name=name,
        tls=Tls(tls_ca_file, tls_cert, tls_key),
        insecure=insecure,
        on_start=echo_err,
    )
