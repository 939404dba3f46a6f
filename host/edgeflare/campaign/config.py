"""The campaign's configuration: one model, whether it comes from flags or from a ``campaign.toml``."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from edgeflare import toml
from edgeflare.campaign.limits import LimitsConfig
from edgeflare.campaign.problem_words import causes, sentence
from edgeflare.devices.runtimes import RuntimeName
from edgeflare.errors import UsageError
from edgeflare.models import AbsolutePath, DecoderOptions, InputOptions, Pixels
from edgeflare.oracles import OracleName

Seconds = Annotated[float, Field(ge=0, le=365 * 86400, allow_inf_nan=False)]
"""A limit of time: at most a year, so that every clock and every wait can count it."""


def _one_or_several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_FOR_TOLERANCE = "dflare"
"""The strategy in place of the default, boundary, where scores are compared and not labels."""


class ModelConfig(_Section):
    """One model: its file, the runtime (by default the device's, or by the extension) and what the file doesn't tell.

    `options` go to the runtime; `output` says whether it returns probabilities, logits or, the deployed
    model only, no more than the label as a class index ("auto": detected by the output's type and on the
    seeds); `output_name` chooses one of several outputs.
    "transcript": a speech recogniser's ("auto": where its file says how its outputs become text); `decoder` says so
    of a file that doesn't.
    """

    path: AbsolutePath
    runtime: RuntimeName | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    input: InputOptions = InputOptions()
    output: Literal["auto", "probabilities", "logits", "label", "transcript"] = "auto"
    output_name: str | None = None
    decoder: DecoderOptions | None = None


class SeedsConfig(_Section):
    """The seed inputs: a folder of images or audio, one file or an ``.npz``, and how to bring them to size.

    `size` is (height, width), by default the original's input size. Of audio, `cut` says what becomes of
    files longer than the model takes: "first" is their beginning, "windows" one piece after the other;
    `resample` brings other rates to the model's. `labels` is a file that maps class folders to class numbers;
    `limit` takes the first seeds only.
    """

    path: AbsolutePath
    size: tuple[Pixels, Pixels] | None = None
    resize: (
        Literal["nearest", "bilinear", "bilinear-antialias", "area", "bicubic", "crop"] | None
    ) = None
    cut: Literal["first", "windows"] | None = None
    resample: bool = False
    labels: AbsolutePath | None = None
    limit: int | None = Field(default=None, ge=1)


class SearchConfig(_Section):
    """How to search, and what one seed may cost.

    `max_queries`, `max_host_queries` (inputs given to the original alone) and `timeout_s` limit the search
    from one seed (0: no limit); results within the first two are repeatable whatever the speed.
    `oracle`: a deviation is another top-1 label ("label"), another word ("transcript"), or a total variation
    distance of the scores above `tolerance` ("tolerance"; then the strategy is dflare unless another is stated); "auto":
    the words of speech recognisers, else the label.
    `margin_floor`: a deviation counts only where both models' top-1 probability is so far above their
    second, with transcripts at each word that differs; 0 with a tolerance, which knows no margin. `seed` is the
    campaign's: it fixes all randomness.
    """

    strategy: str = "boundary"
    options: dict[str, Any] = Field(default_factory=dict)
    operators: tuple[str, ...] = ()
    max_queries: int = Field(default=2000, ge=0)
    max_host_queries: int = Field(default=1_000_000, ge=0)
    timeout_s: Seconds = 180.0
    confirmations: int = Field(default=2, ge=1, le=1000)
    margin_floor: float = Field(default=1e-3, ge=0, lt=1, allow_inf_nan=False)
    seed: int = 0
    oracle: OracleName = "auto"
    tolerance: float | None = Field(default=None, gt=0, lt=1, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_a_floor(cls, values: Any) -> Any:
        """Have no margin floor by default where a tolerance decides."""
        if isinstance(values, Mapping) and values.get("oracle") == "tolerance":
            return {"margin_floor": 0.0, **values}
        return values

    @model_validator(mode="after")
    def _tolerance_fits(self) -> "SearchConfig":
        if self.oracle != "tolerance":
            if self.tolerance is not None:
                raise ValueError(
                    'tolerance (--tolerance) is used with oracle = "tolerance" only: state that, too (--oracle tolerance)'
                )
            return self
        if self.tolerance is None:
            raise ValueError(
                'oracle = "tolerance" needs a tolerance: the largest total variation distance of the scores '
                "that is no deviation, such as tolerance = 0.1 (--tolerance 0.1)"
            )
        if self.margin_floor:
            raise ValueError(
                'margin_floor is used with labels and transcripts only, not with oracle = "tolerance"'
            )
        if self.strategy == "boundary" and "strategy" not in self.model_fields_set:
            object.__setattr__(self, "strategy", _FOR_TOLERANCE)
        if self.strategy == "boundary":
            raise ValueError(
                'the strategy boundary searches where labels change, so oracle = "tolerance" needs another '
                "one, such as dflare"
            )
        return self

    @property
    def strategy_notice(self) -> str:
        """What to tell the user where the oracle chose another strategy than the default; else ""."""
        if self.strategy != _FOR_TOLERANCE or "strategy" in self.model_fields_set:
            return ""
        return (
            f'the strategy is {self.strategy}, since the default, boundary, searches where labels change and oracle = "tolerance" '
            f"asks for scores; state it (--strategy {self.strategy}) to leave this out"
        )

    @field_validator("options")
    @classmethod
    def _finite(cls, options: dict[str, Any]) -> dict[str, Any]:
        for name, value in options.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number")
        return options

    @model_validator(mode="after")
    def _some_limit(self) -> "SearchConfig":
        if not self.max_queries and not self.timeout_s:
            raise ValueError(
                "max_queries and timeout_s are both 0: a search that finds nothing would never end"
            )
        return self

    @model_validator(mode="after")
    def _is_affordable(self) -> "SearchConfig":
        """Refuse what a search of `max_queries` could never ask."""
        options = self.options if self.strategy == "boundary" else {}
        for name in ("device_budget", "candidates"):
            wanted = options.get(name)
            if isinstance(wanted, int) and 0 < self.max_queries < wanted:
                raise ValueError(
                    f"{name} is {wanted}, but max_queries ends a search after {self.max_queries}: "
                    f"raise max_queries to {wanted} (0: no limit), or lower {name}"
                )
        return self


class FleetConfig(_Section):
    """How several devices share a campaign.

    "split": devices of one kind share the seeds; "replicate": each device searches from every seed, then
    every triggering input is tried on every device. `allow_mixed` lets devices that differ share seeds;
    what is found then depends on which device took which seed. `device_queries` and `total_queries`:
    once a device, or all of them, were asked so often, about seeds and to measure, too, no new search begins; those
    under way end.
    `handover_s`: a device away for so long hands its seeds to the others; `patience_s`: with none left
    for so long the campaign pauses.
    """

    mode: Literal["split", "replicate"] = "split"
    allow_mixed: bool = False
    device_queries: int | None = Field(default=None, ge=1)
    total_queries: int | None = Field(default=None, ge=1)
    handover_s: Seconds = 30.0
    patience_s: Seconds = 600.0


class CampaignConfig(_Section):
    """Everything that a campaign is run from.

    `devices` are ``local``, names in the inventory, ``ssh://user@host:port`` or ``adb://serial``; one
    that stands there several times gets as many agents. `original_timeout_s`: loading the original on the
    host, or one inference of it, may take so many seconds (a device's own limit stands in the inventory). `python` is the command of their Python, over what the inventory
    says. `concurrency` is the number of searches in flight on each device (None: as many as keep it
    busy). `one_trip` gathers what all searches ask a device into few large requests, which alone doesn't
    change what is found; for the strategy boundary it also sends 4 candidates at once (option
    candidates), which does.
    `control` searches from the same seeds for deviations of the original from itself, or from its float
    copy `control_model`: each one found is a false alarm. `limits` say what the results must keep to; they
    change nothing of the search.
    """

    original: ModelConfig
    deployed: ModelConfig
    seeds: SeedsConfig
    devices: Annotated[tuple[str, ...], BeforeValidator(_one_or_several), Field(min_length=1)] = (
        "local",
    )
    original_timeout_s: float = Field(default=60.0, ge=1, le=86400, allow_inf_nan=False)
    python: str | None = Field(default=None, min_length=1)
    inventory: AbsolutePath | None = None
    out: Annotated[Path, AfterValidator(toml.expanded)] | None = None
    search: SearchConfig = SearchConfig()
    fleet: FleetConfig = FleetConfig()
    limits: LimitsConfig = LimitsConfig()
    concurrency: int | None = Field(default=None, ge=1, le=4096)
    one_trip: bool = False
    control: bool = False
    control_model: AbsolutePath | None = None
    allow_disagreement: bool = False

    @model_validator(mode="after")
    def _control_is_on(self) -> "CampaignConfig":
        if self.control_model is not None and not self.control:
            raise ValueError("control_model is used with control = true only")
        return self


def config_from(values: Mapping[str, Any], source: str) -> CampaignConfig:
    """Validate plain values. Raises UsageError with one sentence naming each wrong key."""
    try:
        return CampaignConfig.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"{source}: {problems_of(error)}") from error


def problems_of(error: ValidationError) -> str:
    """Return what is wrong with the first few keys, misspelt ones first, as one sentence."""
    misspelt_first = sorted(
        causes(error.errors()), key=lambda problem: problem["type"] != "extra_forbidden"
    )
    return "; ".join(sentence(problem) for problem in misspelt_first[:4])


def load_config(path: Path, overrides: Mapping[str, Any] | None = None) -> CampaignConfig:
    """Read a ``campaign.toml``; its relative paths start at its own folder.

    `overrides` (nested, as from flags) win over the file. Raises UsageError.
    """
    values = toml.load(path, advice="`edgeflare init` writes one")
    return config_from(merge(_anchored(values, path.parent), overrides or {}), str(path))


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` laid on top, table by table."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged


_PATHS = (
    ("original", "path"),
    ("deployed", "path"),
    ("original", "decoder", "vocabulary"),
    ("deployed", "decoder", "vocabulary"),
    ("seeds", "path"),
    ("seeds", "labels"),
    ("inventory",),
    ("control_model",),
    ("limits", "baseline"),
    ("out",),
)


def _anchored(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    for *tables, key in _PATHS:
        table: Any = values
        for name in tables:
            table = table.get(name, {}) if isinstance(table, dict) else {}
        if isinstance(table, dict) and isinstance(table.get(key), str):
            table[key] = str(folder / toml.expanded(table[key]))
    return values
