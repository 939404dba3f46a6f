"""The configuration of a fleet: several devices of one campaign."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from edgeflare._internal.flags import Flag
from edgeflare.errors import UsageError

Seconds = Annotated[float, Field(ge=0, le=365 * 86400, allow_inf_nan=False)]
"""A limit of time: at most a year, so that every clock and every wait can count it."""


class FleetConfig(BaseModel, extra="forbid", frozen=True):
    """How several devices share a campaign."""

    mode: Annotated[Literal["split", "replicate"], Flag("--fleet", metavar="MODE")] = Field(
        default="split",
        description="split: devices of one kind share the seeds (the default). replicate: each "
        "device searches from every seed, then every trigger is tried on every device and their "
        "answers are compared.",
    )
    allow_mixed: Annotated[bool, Flag("--allow-mixed")] = Field(
        default=False,
        description="Let devices that differ share the seeds; what is found then depends on which "
        "device took which seed.",
    )
    device_queries: Annotated[int | None, Flag("--device-queries", metavar="N")] = Field(
        default=None,
        ge=1,
        description="Give a device N inputs at most; a search that this stops begins again later.",
        examples=[100_000],
    )
    total_queries: Annotated[int | None, Flag("--total-queries", metavar="N")] = Field(
        default=None, ge=1, description="The same for all devices together.", examples=[1_000_000]
    )
    handover_s: Annotated[Seconds, Flag("--handover", metavar="SECONDS")] = Field(
        default=30.0,
        description="A device away for so long hands its seeds to the others; default 30.",
    )
    patience_s: Annotated[Seconds, Flag("--patience", metavar="SECONDS")] = Field(
        default=600.0,
        description="With no device left for so long the campaign pauses; default 600.",
    )

    def check_for_workers(self) -> None:
        """Raise UsageError for what workers of several hosts can't do together."""
        if self.mode != "split":
            raise UsageError(
                "--fleet replicate is not for --dask: there devices share the seeds; leave one of "
                "both out"
            )
        if self.total_queries is not None:
            raise UsageError(
                "--total-queries is not for --dask: workers don't know what the others ask; limit "
                "each device with --device-queries"
            )
