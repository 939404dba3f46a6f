"""The flags of ``run`` -> the campaign's configuration."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeflare import UsageError
from edgeflare.cli.parse import pairs, without_none

if TYPE_CHECKING:
    from edgeflare import CampaignConfig


def values_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested table that the flags stand for, by parameter name; what was not given is left out,
    and so is what a command has no flag for.

    Raises UsageError for a KEY=VALUE that is none, and for an option stated in two ways.
    """

    def table(name: str) -> dict[str, Any]:
        flag = "--" + name.rstrip("_").replace("_", "-")
        return pairs(flags[name] or [], flag)

    flags = defaultdict(lambda: None, flags)
    both = table("input_")
    return without_none(
        {
            "original": {
                "path": flags["original"],
                "input": both | table("original_input"),
                "output": flags["original_output"] or flags["output"],
                "output_name": flags["original_output_name"] or flags["output_name"],
                "decoder": table("decoder") or None,
            },
            "deployed": {
                "path": flags["deployed"],
                "input": both | table("deployed_input"),
                "output": flags["deployed_output"] or flags["output"],
                "output_name": flags["deployed_output_name"] or flags["output_name"],
                "decoder": table("decoder") or None,
                "options": table("runtime_option"),
            },
            "seeds": {
                "path": flags["seeds"],
                "resize": flags["resize"],
                "cut": flags["cut"],
                "resample": flags["resample_audio"],
                "labels": flags["labels"],
                "limit": flags["limit"],
            },
            "search": {
                "strategy": flags["strategy"],
                "options": _with_short_forms(table("option"), flags),
                "operators": flags["operator"],
                "max_queries": flags["max_queries"],
                "max_host_queries": flags["max_host_queries"],
                "timeout_s": flags["timeout"],
                "margin_floor": flags["margin_floor"],
                "oracle": flags["oracle"],
                "tolerance": flags["tolerance"],
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
            "original_timeout_s": flags["original_timeout"],
            "python": flags["python"],
            "inventory": flags["inventory"],
            "out": flags["out"],
            "concurrency": flags["concurrency"],
            "one_trip": flags["one_trip"],
            "control": flags["control"] or (flags["control_model"] is not None or None),
            "control_model": flags["control_model"],
            "allow_disagreement": flags["allow_disagreement"],
        }
    )


_SHORT_FORMS = ("variant", "crossing", "device_budget", "max_l2", "max_linf", "min_ssim")
"""Options of strategies that have a flag of their own."""


def _with_short_forms(options: dict[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the strategy's options with what their own flags say."""
    for name in _SHORT_FORMS:
        said = flags[name]
        if said is None:
            continue
        stated = options.setdefault(name, said)
        if stated != said:
            flag = "--" + name.replace("_", "-")
            raise UsageError(
                f"{flag} {said} and --option {name}={stated} contradict each other; state one"
            )
    return options


def config_of(flags: Mapping[str, Any]) -> "CampaignConfig":
    """Return the configuration: of the campaign file with the flags laid on top, or of the flags alone.

    Of flags alone `--variant` says as well that the strategy is dflare, unless another one is stated.
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
    if flags["variant"] is not None and flags["strategy"] is None:
        values.setdefault("search", {})["strategy"] = "dflare"
    return config_from(values, "run")
