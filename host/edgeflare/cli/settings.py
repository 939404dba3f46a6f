"""What commands are told that isn't a campaign's setting: each field states its flag, or its argument.

It is imported when a command is parsed, so that others start fast.
"""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from edgeflare._internal import plugins
from edgeflare._internal.flags import Flag, FlagsOfCampaign, Typed
from edgeflare._internal.text import ADDRESS
from edgeflare.cli.options import folder
from edgeflare.errors import UsageError

if TYPE_CHECKING:
    from edgeflare.campaign import Cluster, FleetConfig

_HOSTS = "Devices of several hosts"
_MLFLOW = "MLflow"
_NARROWED = "Only a part"
_DEVICE = "local, a name in the inventory, ssh://user@host:port or adb://SERIAL."
_OF_SEARCHES = (
    *("strategy", "variant", "option", "crossing", "device_budget", "max_l2", "max_linf"),
    *("min_ssim", "operator", "max_queries", "max_host_queries", "timeout"),
)
"""Settings of searches, which commands don't have that search nothing."""
_TOML = "A campaign.toml (edgeflare init writes one)."


def _place(name: str, about: str, panel: str | None = None) -> Flag:
    return Flag(name, help=about, parser=folder, panel=panel)


class TlsSettings(BaseModel):
    """How a Dask scheduler is reached."""

    tls_ca_file: Annotated[Path | None, Flag("--tls-ca-file", metavar="FILE", panel=_HOSTS)] = (
        Field(
            None, description="The certificate of the authority that signed the scheduler's (PEM)."
        )
    )
    tls_cert: Annotated[Path | None, Flag("--tls-cert", metavar="FILE", panel=_HOSTS)] = Field(
        None, description="This host's certificate (PEM)."
    )
    tls_key: Annotated[Path | None, Flag("--tls-key", metavar="FILE", panel=_HOSTS)] = Field(
        None, description="The key of this host's certificate (PEM)."
    )
    insecure: Annotated[bool, Flag("--insecure", panel=_HOSTS)] = Field(
        False,
        description="Allow tcp:// to another host: any host that reaches the scheduler or a worker can "
        "run any code there.",
    )


class HostsSettings(TlsSettings):
    """What a campaign is told that may use the devices of several hosts."""

    dask: Annotated[str | None, Flag("--dask", metavar="ADDRESS", panel=_HOSTS)] = Field(
        None,
        description="Use the devices of the workers (`edgeflare worker`) at this Dask scheduler, "
        "tls://HOST:8786.",
    )

    def cluster(self, fleet: "FleetConfig") -> "AbstractContextManager[Cluster | None]":
        """Open the cluster, for a campaign with these settings; None without --dask.

        Raises UsageError, UnreachableError.
        """
        tls = {"ca_file": self.tls_ca_file, "cert": self.tls_cert, "key": self.tls_key}
        if self.dask is None:
            if self.insecure or any(tls.values()):
                raise UsageError("--insecure and the --tls flags are for --dask; add it")
            return nullcontext()
        fleet.check_for_workers()
        open_cluster = plugins.load("cluster", "dask")
        if open_cluster is None:
            raise UsageError("no installed distribution has the cluster of --dask")
        cluster: AbstractContextManager[Cluster] = open_cluster(
            self.dask, insecure=self.insecure, **tls
        )
        return cluster


class DemoSettings(BaseModel):
    """``demo``."""

    typed: Annotated[
        Typed, FlagsOfCampaign("device", "fleet", "python", "out", "store", "samples", "reference")
    ] = Typed()
    task: Annotated[str, Flag("--task", metavar="TASK")] = Field(
        "classification",
        description="classification: one digit. detection: up to four digits with their boxes.",
    )
    seeds: Annotated[int, Flag("--seeds")] = Field(
        20, ge=1, le=100, description="How many seed images; of detection up to 60."
    )
    seed: Annotated[int, Flag("--seed")] = Field(0, description="Fixes all randomness.")


class InitSettings(BaseModel):
    """``init``."""

    path: Annotated[Path, Flag("path")] = Field(
        Path("campaign.toml"), description="The file to write."
    )


class ResumeSettings(HostsSettings):
    """``resume``."""

    typed: Annotated[
        Typed,
        FlagsOfCampaign(
            *("device", "inventory", "device_queries", "total_queries", "handover", "patience"),
            *("original_timeout", "workers", "allow_disagreement"),
            device={"help": "Other devices than the campaign's; may be repeated."},
            inventory={"help": "Another device inventory than before (TOML)."},
        ),
    ] = Typed()


class StatusSettings(BaseModel):
    """``status``."""

    watch: Annotated[bool, Flag("--watch")] = Field(
        False, description="Look again each second until the campaign ends."
    )


class ShowSettings(BaseModel):
    """``show``."""

    wide: Annotated[bool, Flag("--wide")] = Field(
        False, description="With every step from a seed to its trigger."
    )


class ExportSettings(BaseModel):
    """``export``."""

    folder: Annotated[Path | None, Flag("folder")] = Field(
        None, description="The folder to make; needed without --mlflow."
    )
    mlflow: Annotated[bool, Flag("--mlflow", panel=_MLFLOW)] = Field(
        False,
        description="Log the finished campaign as a run of MLflow: metrics, parameters, report.html, "
        "triggers.jsonl and a few pictures. Logged again, its run is brought up to date.",
    )
    mlflow_uri: Annotated[str | None, Flag("--mlflow-uri", metavar="URI", panel=_MLFLOW)] = Field(
        None,
        description="The tracking server; by default MLFLOW_TRACKING_URI, else MLflow's own choice.",
    )
    mlflow_experiment: Annotated[
        str | None, Flag("--mlflow-experiment", metavar="NAME", panel=_MLFLOW)
    ] = Field(
        None, description="The experiment; by default MLFLOW_EXPERIMENT_NAME, else edgeflare."
    )


class RunSettings(HostsSettings):
    """``run``."""

    campaign: Annotated[Path | None, Flag("campaign")] = Field(None, description=_TOML)
    typed: Annotated[Typed, FlagsOfCampaign()] = Typed()


class SurveySettings(HostsSettings):
    """``survey``."""

    campaign: Annotated[Path | None, Flag("campaign")] = Field(None, description=_TOML)
    typed: Annotated[
        Typed,
        FlagsOfCampaign(without=(*_OF_SEARCHES, "survey")),
    ] = Typed()


class SelftestSettings(BaseModel):
    """``selftest``."""

    seeds: Annotated[int, Flag("--seeds")] = Field(
        20, ge=1, le=100, description="How many seed images."
    )


EMBED_MB = 10


class ReportSettings(BaseModel):
    """``report``."""

    campaign: Annotated[
        Path, _place("campaign", f"A campaign's or a replay's folder, or {ADDRESS}.")
    ]
    form: Annotated[str, Flag("--format", metavar="FORMAT")] = Field(
        "html",
        description="html: one page to look at. junit: test cases for CI. json: everything for a "
        "program. markdown: for a comment on a change or a job's summary, below 1 MB. csv: a line a "
        "finding, or an input of a replay.",
    )
    out: Annotated[Path | None, Flag("--out", metavar="FILE")] = Field(
        None,
        description="The file to write; by default CAMPAIGN/report.html (of a campaign's address "
        "NAME-report.html), and stdout for the other formats. Markdown has pictures in a folder beside its "
        "file, on stdout none.",
    )
    class_names: Annotated[Path | None, Flag("--class-names", metavar="FILE")] = Field(
        None,
        description="The classes' names: text with a name a line, a JSON list, {name: number} or {number: "
        "name}; by default the campaign's own label mapping.",
    )
    embed_mb: Annotated[float | None, Flag("--embed-mb", metavar="MB")] = Field(
        None,
        ge=0,
        description="So many MB of pictures and sounds go into the page, the rest beside it (default "
        f"{EMBED_MB}).",
    )


class CorpusSettings(BaseModel):
    """``corpus show``."""

    corpus: Annotated[Path, _place("corpus", f"A corpus' folder, or {ADDRESS}.")]


class CorpusAddSettings(BaseModel):
    """``corpus add``."""

    corpus: Annotated[
        Path, _place("corpus", f"A corpus' folder, made where there is none; or {ADDRESS}.")
    ]
    campaigns: Annotated[
        tuple[Path, ...],
        _place("campaign", f"Folders of campaigns or replays; or {ADDRESS}."),
    ]
    name: Annotated[str | None, Flag("--name", metavar="NAME")] = Field(
        None,
        description="What the deployed model is called in the corpus; default: its file's name.",
    )
    per_pair: Annotated[int | None, Flag("--per-pair", metavar="N")] = Field(
        None,
        ge=1,
        description="Keep up to N triggers of one seed input and class pair from now on (3 in a new "
        "corpus).",
    )
    store: Annotated[str | None, Flag("--store", metavar="URL")] = Field(
        None,
        description="PostgreSQL database for a new corpus: postgresql://user@host/database.",
    )
    samples: Annotated[str | None, Flag("--samples", metavar="PLACE")] = Field(
        None,
        description="Where a new corpus has its samples: a folder that all hosts share, or "
        "s3://bucket/prefix.",
    )


class CorpusRemoveSettings(CorpusSettings):
    """``corpus remove``."""

    model: Annotated[str | None, Flag("--model", metavar="NAME")] = Field(
        None, description="What only this deployed model showed."
    )
    pair: Annotated[str | None, Flag("--pair", metavar="A,B")] = Field(
        None, description="Those the original calls class A and the deployed model B."
    )
    fixed_for: Annotated[float | None, Flag("--fixed-for", metavar="DAYS")] = Field(
        None,
        ge=0,
        description="Those that nothing deviated on for this number of days, by the last look of each "
        "device.",
    )
    dry_run: Annotated[bool, Flag("--dry-run")] = Field(
        False, description="Tell what would go, and remove nothing."
    )


class InventorySettings(BaseModel):
    """``devices list``."""

    inventory: Annotated[Path | None, Flag("--inventory")] = Field(
        None, description="The device inventory (TOML)."
    )


class DeviceSettings(InventorySettings):
    """Commands on one device."""

    device: Annotated[str, Flag("device")] = Field(description=_DEVICE)


class DeviceStatusSettings(InventorySettings):
    """``devices status``."""

    devices: Annotated[tuple[str, ...], Flag("devices", metavar="DEVICE")] = Field(
        (),
        description="local, names in the inventory, ssh://user@host:port or adb://SERIAL; none: the whole "
        "inventory.",
    )


class DeviceCheckSettings(DeviceSettings):
    """``devices check``."""

    python: Annotated[str | None, Flag("--python")] = Field(
        None, description="The device's Python command; default python3 there."
    )
    model: Annotated[Path | None, Flag("--model")] = Field(
        None, description="Try this model; none: a small one of EdgeFlare's own."
    )


class DeviceTrustSettings(DeviceSettings):
    """``devices trust``."""

    fingerprint: Annotated[str | None, Flag("--fingerprint")] = Field(
        None, description="Trust the key only if it has this fingerprint (SHA256:...)."
    )


class DevicePruneSettings(DeviceSettings):
    """``devices prune``."""

    everything: Annotated[bool, Flag("--all")] = Field(
        False, description="Remove all, not only what was not used lately."
    )


class PairSettings(BaseModel):
    """Commands on two models and seeds."""

    original: Annotated[Path, Flag("original", metavar="ORIGINAL")] = Field(
        description="The original model."
    )
    deployed: Annotated[Path, Flag("deployed", metavar="DEPLOYED")] = Field(
        description="The deployed model."
    )
    seeds: Annotated[Path, Flag("seeds", metavar="SEEDS")] = Field(
        description="A folder of images or recordings, or an .npz."
    )


class InputsSettings(PairSettings):
    """``inputs``."""

    typed: Annotated[
        Typed,
        FlagsOfCampaign(
            *("input", "original_input", "deployed_input", "output", "original_output"),
            *("deployed_output", "output_name", "original_output_name", "deployed_output_name"),
            *("input_name", "original_input_name", "deployed_input_name", "fixed_inputs"),
            *("original_fixed_inputs", "deployed_fixed_inputs", "decoder", "confidence"),
            *("runtime_option", "resize", "cut", "resample_audio", "labels", "limit"),
            *("device", "inventory", "python", "seed", "task"),
        ),
    ] = Typed()


class CheckSettings(PairSettings):
    """``check``."""

    typed: Annotated[
        Typed,
        FlagsOfCampaign(
            without=(*_OF_SEARCHES, "original", "deployed", "seeds", "allow_disagreement")
        ),
    ] = Typed()


class NightlySettings(BaseModel):
    """``nightly``."""

    config: Annotated[Path, Flag("config", metavar="NIGHTLY.TOML")] = Field(
        description="What runs each night, on which devices."
    )
    accept: Annotated[bool, Flag("--accept")] = Field(
        False,
        description="Run nothing: take the last search of each model on each device that is not green for "
        "the new baseline, since the model was changed on purpose.",
    )
    models: Annotated[tuple[str, ...], Flag("--model", metavar="NAME", panel=_NARROWED)] = Field(
        (), description="Only this model; may be repeated."
    )
    devices: Annotated[tuple[str, ...], Flag("--device", metavar="NAME", panel=_NARROWED)] = Field(
        (), description="Only this device; may be repeated."
    )
