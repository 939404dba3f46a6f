"""The flags of ``run`` -> the campaign's configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeflare import UsageError
from edgeflare.cli.parse import pairs, without_none

if TYPE_CHECKING:
    from edgeflare import CampaignConfig


def values_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested table that the flags stand for, by parameter name; what was not given is left out.

    Raises UsageError for a KEY=VALUE that is none, and for two variants.
    """

    def table(name: str) -> dict[str, Any]:
        flag = "--" + name.rstrip("_").replace("_", "-")
        return pairs(flags[name] or [], flag)

    both = table("input_")
    return without_none(
        {
            "original": {
                "path": flags["original"],
                "input": both | table("original_input"),
                "output": flags["output"],
            },
            "deployed": {
                "path": flags["deployed"],
                "input": both | table("deployed_input"),
                "output": flags["output"],
                "options": table("runtime_option"),
            },
            "seeds": {
                "path": flags["seeds"],
                "resize": flags["resize"],
                "labels": flags["labels"],
                "limit": flags["limit"],
            },
            "search": {
                "strategy": flags["strategy"],
                "options": _with_variant(table("option"), flags["variant"]),
                "operators": flags["operator"],
                "max_queries": flags["max_queries"],
                "timeout_s": flags["timeout"],
                "confirmations": flags["confirmations"],
                "seed": flags["seed"],
            },
            "fleet": {
                "mode": flags["fleet"],
                "allow_mixed": flags["allow_mixed"],
                "device_queries": flags["device_queries"],
                "total_queries": flags["total_queries"],
                "handover_s": flags["handover"],
                "patience_s": flags["patience"],
            },
            "devices": flags["device"],
            "python": flags["python"],
            "inventory": flags["inventory"],
            "out": flags["out"],
            "concurrency": flags["concurrency"],
            "allow_disagreement": flags["allow_disagreement"],
        }
    )


def _with_variant(options: dict[str, Any], variant: str | None) -> dict[str, Any]:
    """Return the strategy's options with what ``--variant`` says."""
    if variant is None:
        return options
    stated = options.setdefault("variant", variant)
    if stated != variant:
        raise UsageError(
            f"--variant {variant} and --option variant={stated} contradict each other; state one"
        )
    return options


def config_of(flags: Mapping[str, Any]) -> "CampaignConfig":
    """Return the configuration: of the campaign file with the flags laid on top, or of the flags alone.

    Raises UsageError.
    """
    from edgeflare import config_from, load_config

    values = values_of(flags)
    if flags["campaign"] is not None:
        return load_config(Path(flags["campaign"]), values)
    missing = [name for name in ("original", "deployed", "seeds") if flags[name] is None]
    if missing:
        raise UsageError(
            f"{', '.join(f'--{name}' for name in missing)} missing: state all three, or give a "
            "campaign.toml (`edgeflare init` writes one)"
        )
    return config_from(values, "edgeflare run")
