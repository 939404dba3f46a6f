"""How samples enter both models of a campaign: what tells it, and whether another way makes them agree."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edgeflare.campaign.settings.config import config_from
from edgeflare.models import InputSpec, spec_from_json, stated_options
from edgeflare.store import Store
from edgeflare.triage.cause import Triage
from edgeflare.triage.ways import audio_options


@dataclass(frozen=True)
class ModelFeed:
    """How samples enter a model: the options of `--input`, and what tells them.

    `source`: "stated", or a code of what tells it; "": not known of a campaign of an earlier version.
    `names`: those of operators, files or entries of metadata that tell it.
    """

    file: str
    samples: Literal["images", "audio"]
    options: Mapping[str, str]
    source: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class InputPair:
    """How samples enter both models."""

    original: ModelFeed
    deployed: ModelFeed


@dataclass(frozen=True)
class FoundInputs:
    """How samples enter both models, and why they differ, if they do: another way of feeding, or none."""

    inputs: InputPair
    triage: Triage


def fed_inputs(store: Store) -> InputPair:
    """Return how samples enter the models of a campaign. Raises StoreError."""
    models = store.models
    return InputPair(_feed(models["original"]), _feed(models["deployed"]))


def found_inputs(store: Store) -> FoundInputs:
    """Return how samples enter the models of a campaign, with its triage. Raises as `triage_campaign`."""
    from edgeflare.campaign.pair.triage import triage_campaign  # what is shown needs no models

    triage = store.result("triage", Triage)
    if triage is None:  # of a pair that looks right none was made
        triage = triage_campaign(store, config_from(store.campaign, str(store.folder)))
    return FoundInputs(fed_inputs(store), triage)


def _feed(model: Mapping[str, Any]) -> ModelFeed:
    spec = spec_from_json(model["input"])
    is_image = isinstance(spec, InputSpec)
    options = stated_options(spec) if isinstance(spec, InputSpec) else audio_options(spec)
    source, names = "" if "feed" not in model else "stated", ()
    if model.get("feed"):
        source, names = model["feed"]["source"], tuple(model["feed"]["names"])
    return ModelFeed(model["name"], "images" if is_image else "audio", options, source, names)
