"""The demo: real MNIST digits, a float LeNet-5 and its int8 version, all shipped with EdgeFlare."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeflare.campaign.config import CampaignConfig, config_from, merge

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "demo"


def demo_config(
    overrides: Mapping[str, Any] | None = None,
    typed: Mapping[str, str] | None = None,
    *,
    seeds: int = 20,
    out: Path | None = None,
    campaign_seed: int = 0,
) -> CampaignConfig:
    """Return the demo's campaign over its first `seeds` (1 to 100) images, with `overrides` (nested) laid on top.

    `typed` names the flags of these, as in `config_from`. Raises UsageError.
    """
    values = {
        "original": {"path": FOLDER / "original.onnx"},
        "deployed": {"path": FOLDER / "deployed.tflite"},
        "seeds": {"path": FOLDER / "seeds.npz", "limit": seeds},
        "out": out,
        "search": {
            "options": {"crossing": "least-l2", "effort": 64},
            "seed": campaign_seed,
            "max_queries": 5000,
        },
    }
    return config_from(merge(values, overrides or {}), "demo", typed)
