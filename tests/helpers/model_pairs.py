"""Two models brought to one understanding as by a campaign, without a device."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from edgeflare.campaign.pair.model_pair import resolve_pair
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.devices import LoadedModel
from edgeflare.models import OriginalModel


class OneDevice:
    """Stands for a fleet: a device that describes the deployed model, and takes what it is configured with."""

    def __init__(self, model: OriginalModel) -> None:
        self.model = LoadedModel(
            tuple(model.inputs), tuple(model.outputs), {}, dict(model.metadata), model.decoder
        )
        self.sessions = [self]
        self.configured: list[Any] = []

    def __iter__(self) -> Iterator["OneDevice"]:
        return iter(self.sessions)

    def configure(self, *configuration: Any, **of_inputs: Any) -> None:
        self.configured.append(configuration)
        self.of_inputs = of_inputs


class Pair:
    def __init__(self, config: CampaignConfig, stack: ExitStack) -> None:
        self.config = config
        self.original, deployed = (
            OriginalModel(path, "onnx", {}, here=True)
            for path in (config.original.path, config.deployed.path)
        )
        stack.callback(self.original.close)
        stack.callback(deployed.close)
        self.device = OneDevice(deployed)
        self.sides = resolve_pair(config, self.original, self.device)  # type: ignore[arg-type]


def stated(
    original: Path, deployed: Path, first: dict[str, Any] | None = None, **both: Any
) -> CampaignConfig:
    """A configuration in which so much is stated of both models, or of the original `first`."""
    tables = {
        "original": {"path": original, **(first or both)},
        "deployed": {"path": deployed, **both},
        "seeds": {"path": original.parent},
    }
    return config_from(tables, "the test")
