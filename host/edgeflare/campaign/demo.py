"""The demo: real MNIST digits, a float LeNet-5 and its int8 version, all shipped with EdgeFlare."""

from collections.abc import Sequence
from pathlib import Path

from edgeflare.campaign.config import CampaignConfig, config_from

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "demo"


def demo_config(
    *,
    seeds: int = 20,
    devices: Sequence[str] = ("local",),
    fleet: str = "split",
    python: str | None = None,
    out: Path | None = None,
    campaign_seed: int = 0,
) -> CampaignConfig:
    """Return the demo's campaign over its first `seeds` (1 to 100) images.

    `fleet`, split or replicate, is how several devices take part; see `FleetConfig`. `python` is the
    devices' Python command, over what the inventory says. Raises UsageError.
    """
    values = {
        "original": {"path": FOLDER / "original.onnx"},
        "deployed": {"path": FOLDER / "deployed.tflite"},
        "seeds": {"path": FOLDER / "seeds.npz", "limit": seeds},
        "devices": tuple(devices),
        "fleet": {"mode": fleet},
        "python": python,
        "out": out,
        "search": {
            "options": {"crossing": "least-l2", "effort": 64},
            "seed": campaign_seed,
            "max_queries": 5000,
        },
    }
    return config_from(values, "demo")
