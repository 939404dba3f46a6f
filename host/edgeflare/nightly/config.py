"""The configuration of nightly runs: one model for ``nightly.toml``."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from edgeflare._internal import toml
from edgeflare._internal.flags import problems_of
from edgeflare._internal.text import first_of
from edgeflare.analysis import check_healthy
from edgeflare.campaign.executor import check_families, check_files
from edgeflare.campaign.fleet import fleet_devices
from edgeflare.campaign.queries.search import strategy_of
from edgeflare.campaign.settings.baseline import baseline_pairs
from edgeflare.campaign.settings.config import (
    PATHS,
    CampaignConfig,
    SamplesPlace,
    SearchConfig,
    StoreUrl,
    config_from,
    load_config,
    merge,
)
from edgeflare.campaign.settings.fleet import FleetConfig
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.campaign.settings.models import ModelConfig, Section, SeedsConfig
from edgeflare.campaign.settings.survey import INT8, SurveyConfig
from edgeflare.campaign.survey.references import check_references
from edgeflare.errors import EdgeFlareError, UsageError
from edgeflare.models import AbsolutePath
from edgeflare.seeds import load_label_mapping

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class NightlyModel(Section):
    """A model to watch: a ``campaign.toml``, or the three tables that it needs at least.

    Of a campaign all settings hold but its devices, folder, fleet mode and control. `name` is the
    model's in history and on the page.
    """

    name: str
    campaign: AbsolutePath | None = None
    original: ModelConfig | None = None
    deployed: ModelConfig | None = None
    seeds: SeedsConfig | None = None

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is no plain name; take letters, digits, dots, dashes and underscores"
            )
        return name

    @model_validator(mode="after")
    def _one_source(self) -> "NightlyModel":
        tables = {name: getattr(self, name) for name in ("original", "deployed", "seeds")}
        missing = [name for name, table in tables.items() if table is None]
        if self.campaign is None and missing:
            raise ValueError(f"{', '.join(missing)} missing; or name a campaign.toml as campaign")
        if self.campaign is not None and len(missing) < len(tables):
            raise ValueError("give either campaign or original, deployed and seeds, not both")
        return self


class NightlyLimits(LimitsConfig):
    """A campaign's limits; the default `baseline` of `new_pairs` is the last green night."""

    @model_validator(mode="after")
    def _has_a_baseline(self) -> "NightlyLimits":
        return self


class KeepConfig(Section):
    """Retention: the campaigns of the last `nights` nights are stored, up to `mb` megabytes in all.

    Figures, words and logs stay for ever, and so do the campaigns that later nights are compared
    with.
    """

    nights: int = Field(default=30, ge=1)
    mb: int | None = Field(default=20_000, ge=1)


class NightlyConfig(Section):
    """The configuration of nightly runs.

    Each of the `models` runs on each of the `devices` alone. `store` and `samples`, as of a
    campaign, say where campaigns, corpora and what is known of the nights are stored; several hosts
    may have one history there, each with a folder `history` of the same name. What stands in `search`, `fleet` and
    `limits` wins over the campaign's own. `vary_seed` adds the night's number to the campaign seed,
    so that each night searches elsewhere; without it a model and a device that did not change give
    the same figures.
    """

    history: AbsolutePath
    store: StoreUrl | None = None
    samples: SamplesPlace | None = None
    devices: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
        Field(min_length=1),
    ]
    models: Annotated[tuple[NightlyModel, ...], Field(min_length=1)]
    inventory: AbsolutePath | None = None
    survey: SurveyConfig = SurveyConfig()
    search: SearchConfig = SearchConfig()
    fleet: FleetConfig = FleetConfig()
    limits: NightlyLimits = NightlyLimits()
    keep: KeepConfig = KeepConfig()
    vary_seed: bool = False

    @model_validator(mode="after")
    def _each_once(self) -> "NightlyConfig":
        for what, names in (
            ("device", self.devices),
            ("model", [one.name for one in self.models]),
        ):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise ValueError(f"the {what} {twice[0]!r} stands there twice")
        return self

    def campaign(
        self, model: NightlyModel, device: str, *, night: int = 0, baseline: Path | None = None
    ) -> CampaignConfig:
        """Return the campaign, without a folder, of a model on a device in this night.

        `baseline` is the campaign of the last green night, where there was one. Raises UsageError
        where the model's ``campaign.toml`` is wrong.
        """
        limits = self.limits.model_dump(exclude_unset=True)
        if not self.limits.new_pairs and self.limits.baseline is None:
            if baseline is None:  # the first night: what the campaign.toml says for itself
                limits.pop("new_pairs")
            else:
                limits["baseline"] = baseline
        over: dict[str, Any] = {
            "devices": (device,),
            "survey": self.survey.model_dump(exclude_unset=True),
            "search": self.search.model_dump(exclude_unset=True),
            "fleet": {**self.fleet.model_dump(exclude_unset=True), "mode": "split"},
            "limits": limits,
            "control": False,
            "control_model": None,
            "out": None,
            "store": self.store,
            "samples": self.samples,
        }
        if self.inventory is not None:
            over["inventory"] = self.inventory
        if model.campaign is not None:
            config = load_config(model.campaign, over)
        else:
            tables = model.model_dump(exclude_unset=True, exclude={"name", "campaign"})
            config = config_from(merge(tables, over), f"the model {model.name}")
        if config.limits.max_new_triggers is None:
            config = _with(config, "limits", max_new_triggers=0)
        if self.vary_seed:
            config = _with(config, "search", seed=config.search.seed + night)
        return config


def load_nightly(path: Path) -> NightlyConfig:
    """Read a ``nightly.toml``; its relative paths start at its own folder.

    Raises UsageError, one sentence that names each wrong key.
    """
    path = Path(path)
    values = toml.load(path)
    try:
        anchored = toml.anchor_paths(values, _PATHS, path.parent, words=(INT8,))
        return NightlyConfig.model_validate(anchored)
    except ValidationError as error:
        raise UsageError(problems_of(error, str(path))) from error


_PATHS = (
    ("history",),
    ("inventory",),
    ("samples",),
    ("limits", "baseline"),
    ("models", "campaign"),
    ("survey", "references"),
    *(("models", *path) for path in PATHS if path[0] in ("original", "deployed", "seeds")),
)


def _with(config: CampaignConfig, table: str, **values: Any) -> CampaignConfig:
    """Return the campaign with other values in one of its tables."""
    return config.model_copy(update={table: getattr(config, table).model_copy(update=values)})


ConfigCheck: TypeAlias = Callable[[CampaignConfig], object]


def check_night(config: NightlyConfig, chosen: Sequence[tuple[NightlyModel, str]]) -> None:
    """Check every model and device of a night, without connecting to a device or loading a model.

    Raises UsageError, one sentence with every mistake: a device that isn't in the inventory, an
    inventory or a ``campaign.toml`` that is missing or wrong, an unknown strategy, a file that
    isn't there.
    """
    found = list(dict.fromkeys(_mistakes(config, chosen)))
    if found:
        raise UsageError(f"no night was begun: {first_of(found)}")


def _mistakes(config: NightlyConfig, chosen: Sequence[tuple[NightlyModel, str]]) -> Iterator[str]:
    checked = set[str]()
    for model, device in chosen:
        try:
            campaign = config.campaign(model, device)
        except UsageError as error:
            yield str(error)
            continue
        checks: list[ConfigCheck] = [fleet_devices]
        if model.name not in checked:
            checked.add(model.name)
            checks.append(lambda campaign: check_healthy(campaign.survey.references))
            checks += [check_files, _check_seeds, strategy_of, check_references]
            checks.append(check_families)
            if config.limits.new_pairs or config.limits.baseline is not None:
                # else the last green night is the baseline, if there is one
                checks.append(lambda campaign: baseline_pairs(campaign.limits))
        for check in checks:
            try:
                check(campaign)
            except EdgeFlareError as error:
                yield str(error)
            except OSError as error:  # a folder on the way to it that may not be entered
                yield f"{error.filename} can't be read: {error.strerror}"


def _check_seeds(campaign: CampaignConfig) -> None:
    """Raise UsageError where seeds are missing, or the mapping of their labels can't be used."""
    path: Path = campaign.seeds.path
    if not path.exists():
        raise UsageError(f"there are no seeds at {path}: no such file or folder")
    if campaign.seeds.labels is not None:
        load_label_mapping(campaign.seeds.labels)
