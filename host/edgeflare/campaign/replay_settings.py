"""The configuration of a replay, made of a campaign's: another model, device or firmware, and no search."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeflare.campaign.config import CampaignConfig, ModelConfig, config_from, merge
from edgeflare.devices.runtimes import BY_EXTENSION
from edgeflare.errors import UsageError

STRATEGY = "none"


def replay_config(
    base: CampaignConfig,
    overrides: Mapping[str, Any] | None = None,
    typed: Mapping[str, str] | None = None,
) -> CampaignConfig:
    """Return the configuration of a replay: that of the campaign, with `overrides` (nested) laid on top.

    A model file that another runtime runs than before starts with that one's own options; what is stated
    of its pixels' scaling holds for it, too, how the file before laid them out does not. Nothing is
    searched: each input is asked about as it is, and each deviation is confirmed `search.confirmations` times.
    The margin floor and the limits are the campaign's, but for the baseline: that of a replay is its
    source. `typed` names the flags of the overrides, as in `config_from`. Raises UsageError where a model
    isn't there.
    """
    overrides = overrides or {}
    original, deployed = (
        overrides.get(which, {}).get("path") for which in ("original", "deployed")
    )
    search = base.search.model_copy(
        update={"strategy": STRATEGY, "options": {}, "operators": (), "timeout_s": 0.0}
    )
    if not search.max_queries:
        search = search.model_copy(update={"max_queries": 1})
    endless = base.fleet.model_copy(update={"device_queries": None, "total_queries": None})
    plain = base.model_copy(
        update={
            "original": _with_file(base.original, original),
            "deployed": _with_file(base.deployed, deployed),
            "search": search,
            "fleet": endless,
            "limits": base.limits.model_copy(update={"new_pairs": True, "baseline": None}),
            "control": False,
            "control_model": None,
            "allow_disagreement": True,
            "out": None,
        }
    )
    config = config_from(merge(plain.model_dump(mode="json"), overrides), "replay", typed)
    _check_there(config, original=original, deployed=deployed)
    return config


def _with_file(model: ModelConfig, path: Path | None) -> ModelConfig:
    """Return the model's configuration with another file."""
    if path is None:
        return model
    path = Path(path).expanduser().absolute()
    if _format(path) == _format(model.path):
        return model.model_copy(update={"path": path})
    turned = model.input.model_copy(update={"layout": None})
    return ModelConfig(path=path, input=turned, decoder=model.decoder)


def _format(path: Path) -> str:
    suffix = path.suffix.lower()
    return BY_EXTENSION.get(suffix, suffix)


def _check_there(config: CampaignConfig, **named: Path | None) -> None:
    """Say of a model that has moved how to name it, unless it was named just now."""
    for which in ("original", "deployed"):
        path, given = getattr(config, which).path, named[which]
        if path.is_dir():
            raise UsageError(f"{given or path} is a folder; name the model file in it")
        if path.is_file():
            continue
        if given is not None:
            raise UsageError(f"there is no model file {given}")
        raise UsageError(
            f"the {which} model {path} is not there (any more): name it with --{which}"
        )
