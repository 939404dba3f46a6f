"""The demo: real MNIST digits, a float LeNet-5 and its int8 version, all shipped with EdgeFlare."""

from collections.abc import Sequence
from pathlib import Path

from edgeflare.campaign.config import CampaignConfig, ModelConfig, SearchConfig, SeedsConfig

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "demo"


def demo_config(
    *,
    seeds: int = 20,
    devices: Sequence[str] = ("local",),
    out: Path | None = None,
    campaign_seed: int = 0,
) -> CampaignConfig:
    """Return the demo's campaign over its first `seeds` (1 to 100) images."""
    return CampaignConfig(
        original=ModelConfig(path=FOLDER / "original.onnx"),
        deployed=ModelConfig(path=FOLDER / "deployed.tflite"),
        seeds=SeedsConfig(path=FOLDER / "seeds.npz", limit=seeds),
        devices=tuple(devices),
        out=out,
        search=SearchConfig(
            options={"crossing": "least-l2", "effort": 64}, seed=campaign_seed, max_queries=5000
        ),
    )
