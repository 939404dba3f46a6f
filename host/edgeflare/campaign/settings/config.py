"""The campaign's configuration, whether from flags or from a ``campaign.toml``."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from edgeflare._internal import plugins, toml
from edgeflare._internal.flags import DEVICES, FILES, SEARCH, Flag, Key, conflict, problems_of
from edgeflare.answers import KINDS, SCORES, AnswerKind, kind_of_task, tasks
from edgeflare.answers.detections.settings import DetectionConfig
from edgeflare.answers.oracles import (
    BUILT_IN,
    MARGIN_FLOOR,
    OracleName,
    is_measured,
    traits_of,
)
from edgeflare.answers.values import ValuesConfig
from edgeflare.campaign.settings.fleet import FleetConfig, Seconds
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.campaign.settings.models import ModelConfig, Section, SeedsConfig
from edgeflare.campaign.settings.survey import INT8, SurveyConfig
from edgeflare.errors import StoreError, UsageError
from edgeflare.models import AbsolutePath
from edgeflare.store.location import database_url
from edgeflare.store.samples import absolute_place


def _one_or_several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _stated(section: object) -> Mapping[str, Any] | None:
    """Return what a table or a section states; None of neither."""
    if isinstance(section, BaseModel):
        return section.model_dump(exclude_unset=True)
    return section if isinstance(section, Mapping) else None


_DEFAULT = "boundary"
"""The default strategy."""


class SearchConfig(Section):
    """How to search, what counts as a deviation, and what the search from one seed may cost.

    Results that `timeout_s` ends depend on the speed, others don't.
    """

    strategy: Annotated[str, Flag("--strategy", metavar="NAME", names="strategy")] = Field(
        default=_DEFAULT,
        description="The search strategy: boundary (the default: along the original's decision "
        "boundary, with the fewest device queries), dflare, dflare-d (it without state tracing), "
        "dflare-r (it with operators chosen uniformly), diffchaser (a genetic search), gradient "
        "(along the gradient of the original's margin), deepxplore (along that of several models), "
        "shrink (moves known triggers nearer: see edgeflare shrink) or none (nothing is searched: "
        "only the seeds themselves are compared).",
    )
    options: Annotated[
        dict[str, Any],
        Flag(
            "--variant",
            "Of dflare, dflare-d and dflare-r: reference (its authors' code; the default) or text "
            "(the paper's words). Short for --option variant=NAME; without --strategy it means "
            "dflare.",
            metavar="NAME",
            key="variant",
            type=str,
        ),
        Flag("--option"),
        Flag(
            "--crossing",
            "For boundary, how the original's decision boundary is reached: auto (the default: "
            "the nearest), least-l2, line, mutants or natural. Short for --option "
            "crossing=NAME.",
            metavar="NAME",
            key="crossing",
            type=str,
        ),
        Flag(
            "--device-budget",
            "For boundary, at most N search queries for each seed (confirmations come on top); "
            "what is left after the first trigger goes to a more severe one. Short for --option "
            "device_budget=N.",
            metavar="N",
            key="device_budget",
            type=Annotated[int, Field(ge=1)],
        ),
        Flag(
            "--max-l2",
            "For boundary, the largest L2 distance from the seed, of pixels from 0 to 1 or samples "
            "from -1 to 1. Short for --option max_l2=F.",
            metavar="F",
            key="max_l2",
            type=Annotated[float, Field(gt=0)],
        ),
        Flag(
            "--max-linf",
            "For boundary, the largest change of one value, in levels (of audio those of 16 bits). "
            "Short for --option max_linf=N.",
            metavar="N",
            key="max_linf",
            type=Annotated[int, Field(ge=1, le=65_534)],
        ),
        Flag(
            "--min-ssim",
            "For boundary, the smallest SSIM to the seed (needs scikit-image). Short for --option "
            "min_ssim=F.",
            metavar="F",
            key="min_ssim",
            type=Annotated[float, Field(ge=0, le=1)],
        ),
    ] = Field(
        default_factory=dict,
        description="For the strategy; may be repeated. dflare, dflare-d, dflare-r: "
        "variant=reference, acceptance=not-lower, change or none, selection=metropolis-hastings, "
        "rank or uniform, overflow=clip or wrap, pool=table-3 or reference, state_tracing=false, "
        "delta=1e-3, threshold=0.5, epsilon=1e-7. diffchaser: population=1000, "
        "fitness=k-uncertainty, basic or targeted, k=2, target=3, mutation_rate=0.5, batch=25. "
        "boundary: crossing=auto, least-l2, line, mutants or natural, device_budget=20, effort=64, "
        "candidates=4, tied_classes=2 or 3, max_l2=2, max_linf=30, min_ssim=0.9, "
        "gradients=true. gradient: constraint=light, occlusion or blackout, step=10, steps=50, size=10, "
        "attempts=10. deepxplore: others=MODEL.onnx, constraint=light, step=10, steps=50, size=10, "
        "weight=2. shrink: triggers=FILE, changes=FILE, device_budget=20.",
        examples=[{"device_budget": 20, "max_l2": 2.0}],
    )
    operators: Annotated[tuple[str, ...], Flag("--operator", metavar="NAME")] = Field(
        default=(),
        description="A mutation operator in place of the strategy's own; may be repeated.",
        examples=[["gaussian-noise", "median-blur"]],
    )
    tune: Annotated[bool, Flag("--tune")] = Field(
        default=False,
        description="For boundary on images, choose what is left open (crossing, effort, tied "
        "classes) by the cost of a device query, measured first: another run may choose otherwise.",
    )
    max_queries: Annotated[int, Flag("--max-queries", metavar="N")] = Field(
        default=2000, ge=0, description="Search queries for each seed; 0: no limit."
    )
    max_host_queries: Annotated[int, Flag("--max-host-queries", metavar="N")] = Field(
        default=1_000_000,
        ge=0,
        description="Host-only inputs for each seed; default 1000000. 0: no limit.",
    )
    timeout_s: Annotated[Seconds, Flag("--timeout", metavar="SECONDS")] = Field(
        default=180.0, description="Seconds for each seed; 0: no limit."
    )
    confirmations: Annotated[int, Flag("--confirmations", metavar="N")] = Field(
        default=2, ge=1, le=1000, description="How often a trigger is sent again."
    )
    margin_floor: Annotated[float, Flag("--margin-floor", metavar="F")] = Field(
        default=1e-3,
        ge=0,
        lt=1,
        allow_inf_nan=False,
        description="A deviation counts only where each model's top-1 probability is at least F "
        "above its second (for transcripts: at each word that differs); default 1e-3. An input on "
        "which the original is below that is not sent to the device. 0: none.",
    )
    seed: Annotated[int, Flag("--seed", metavar="N")] = Field(
        default=0, description="Fixes all randomness."
    )
    oracle: Annotated[OracleName, Flag("--oracle", metavar="NAME", names="oracle")] = Field(
        default="auto",
        description="What a deviation is: "
        + ", ".join(f"{one.name} ({one.summary})" for one in BUILT_IN)
        + " or auto (the default: by the task).",
    )
    tolerance: Annotated[float | None, Flag("--tolerance", metavar="F")] = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="The largest distance of both models' answers that is no deviation: with --oracle tolerance "
        "the total variation distance of their scores; of maps, embeddings and vectors that of --measure.",
    )

    @model_validator(mode="before")
    @classmethod
    def _without_a_floor(cls, values: Any) -> Any:
        """Have no margin floor by default where the oracle has another setting in its place."""
        if isinstance(values, Mapping) and traits_of(values.get("oracle")).setting != MARGIN_FLOOR:
            return {MARGIN_FLOOR: 0.0, **values}
        return values

    @model_validator(mode="after")
    def _fits_the_oracle(self) -> "SearchConfig":
        """Refuse settings that the oracle lacks, and a strategy that can't search for it."""
        oracle = traits_of(self.oracle)
        for other in BUILT_IN:
            key = other.setting
            if key not in (MARGIN_FLOOR, oracle.setting) and getattr(self, key) is not None:
                raise conflict(
                    "{setting} is used with {oracle} only: state that, too (--oracle {name}), or of "
                    "maps, embeddings and vectors their task (--task)",
                    setting=Key(key, f"{key} (--{key})"),
                    oracle=self._oracle_key(other.name),
                    name=other.name,
                )
        chosen = self._oracle_key(self.oracle)
        if getattr(self, oracle.setting) is None:
            raise conflict(
                "{oracle} needs a {setting}: {help}",
                oracle=chosen,
                setting=oracle.setting,
                help=oracle.setting_help,
            )
        if self.margin_floor and oracle.setting != MARGIN_FLOOR:
            raise conflict(
                "{floor} is used with labels and transcripts only, not with {oracle}",
                floor=Key(MARGIN_FLOOR, f"{MARGIN_FLOOR} (--margin-floor)"),
                oracle=chosen,
            )
        if is_measured(dict(self)) and _needs_labels(self.strategy):
            raise conflict(
                "{strategy} searches where labels change, so {oracle} needs another one, such as "
                "{other} (--strategy {other})",
                strategy=Key("strategy", f"the strategy {self.strategy}", self.strategy),
                oracle=chosen,
                other=_DEFAULT,
            )
        return self

    def _oracle_key(self, name: str) -> Key:
        return Key("oracle", f'oracle = "{name}"', name, "oracle" not in self.model_fields_set)

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
            raise conflict(
                "{queries} and {timeout} are both 0: a search that finds nothing would never end",
                queries=Key("max_queries", "max_queries (--max-queries)"),
                timeout=Key("timeout_s", "timeout_s (--timeout)"),
            )
        return self

    @model_validator(mode="after")
    def _is_affordable(self) -> "SearchConfig":
        """Refuse options that need more queries than `max_queries` allows."""
        options = self.options if self.strategy == "boundary" else {}
        for name in ("device_budget", "candidates"):
            wanted = options.get(name)
            if isinstance(wanted, int) and 0 < self.max_queries < wanted:
                raise conflict(
                    "{option} is {wanted}, but {limit} ends a search after {queries}: raise it "
                    "(--max-queries {wanted}; 0: no limit), or lower {option}",
                    option=Key(f"options.{name}", name),
                    limit=Key("max_queries", is_default="max_queries" not in self.model_fields_set),
                    wanted=str(wanted),
                    queries=str(self.max_queries),
                )
        return self


def _needs_labels(strategy: str) -> bool:
    from edgeflare.strategies.registry import needs_labels  # with it come all mutation operators

    return needs_labels(strategy)


def _database(text: str) -> str:
    try:
        return database_url(text)
    except StoreError as error:
        raise PydanticCustomError("store", "{reason}", {"reason": str(error)}) from error


def _samples(text: str) -> str:
    try:
        return absolute_place(text)
    except UsageError as error:
        raise PydanticCustomError("samples", "{reason}", {"reason": str(error)}) from error


StoreUrl: TypeAlias = Annotated[str, AfterValidator(_database)]
"""The URL of a database, ``postgresql://user@host/database``."""
SamplesPlace: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_samples)]
"""A folder, or the URL of a prefix in an object store."""


_TASKS = {task: words for kind in KINDS for task, words in kind.tasks.items()}
StatedTask: TypeAlias = Annotated[str, plugins.known_name("kind of answer", ("auto", *_TASKS))]
"""What both models answer with; a task of a distribution's own kind of answer, too."""


class CampaignConfig(Section):
    """Everything that a campaign is run from."""

    original: ModelConfig = Field(
        description="The model that the deployed one was made from; runs on this machine."
    )
    deployed: ModelConfig = Field(description="The compressed model; runs on the device.")
    seeds: SeedsConfig = Field(description="The seed inputs.")
    devices: Annotated[
        tuple[str, ...],
        BeforeValidator(_one_or_several),
        Flag("--device", metavar="DEVICE", panel=DEVICES),
    ] = Field(
        default=("local",),
        min_length=1,
        description="local, an inventory name, ssh://user@host:port or adb://SERIAL. Repeat it for "
        "a fleet.",
    )
    original_timeout_s: Annotated[
        float, Flag("--original-timeout", metavar="SECONDS", panel=SEARCH)
    ] = Field(
        default=60.0,
        ge=1,
        le=86400,
        allow_inf_nan=False,
        description="Seconds that loading the original here, or one inference of it, may take; "
        "default 60.",
    )
    python: Annotated[str | None, Flag("--python", panel=DEVICES)] = Field(
        default=None,
        min_length=1,
        description="The devices' Python command, over what the inventory says; else python3 "
        "there.",
        examples=["/home/pi/venv/bin/python"],
    )
    inventory: Annotated[AbsolutePath | None, Flag("--inventory", panel=DEVICES)] = Field(
        default=None, description="The device inventory (TOML).", examples=["devices.toml"]
    )
    out: Annotated[Annotated[Path, AfterValidator(toml.expand_home)] | None, Flag("--out")] = Field(
        default=None,
        description="Folder to make for the campaign; by default under campaigns/.",
        examples=["campaigns/first"],
    )
    store: Annotated[StoreUrl | None, Flag("--store", metavar="URL")] = Field(
        default=None,
        description="PostgreSQL database that has the campaign's data in place of a file in its "
        "folder: postgresql://user@host/database. The password is in ~/.pgpass or PGPASSWORD.",
        examples=["postgresql://lab@db.example/edgeflare"],
    )
    samples: Annotated[
        SamplesPlace | None,
        Flag("--samples", metavar="PLACE"),
    ] = Field(
        default=None,
        description="Where samples are stored, in place of the campaign's folder: a folder that "
        "all hosts share, or s3://bucket/prefix.",
        examples=["s3://lab/samples"],
    )
    task: Annotated[
        StatedTask, Flag("--task", metavar="NAME", panel=FILES, names="kind of answer")
    ] = Field(
        default="auto",
        description="What both models answer with: "
        + ", ".join(f"{name} ({words})" for name, words in _TASKS.items())
        + " or auto (the default: by the outputs' names and shapes, where they tell).",
    )
    detection: DetectionConfig = Field(
        default=DetectionConfig(), description="Of detectors: which boxes count."
    )
    values: ValuesConfig = Field(
        default=ValuesConfig(),
        description="Of maps, embeddings and vectors: how they are compared.",
    )
    search: SearchConfig = Field(
        default=SearchConfig(), description="How to search from each seed."
    )
    survey: SurveyConfig = Field(
        default=SurveyConfig(), description="What is asked far from the seeds, before the search."
    )
    fleet: FleetConfig = Field(
        default=FleetConfig(), description="How several devices share the campaign."
    )
    limits: LimitsConfig = Field(
        default=LimitsConfig(),
        description="What the results must keep to: `edgeflare run` ends with exit code 1 where "
        "one is crossed.",
    )
    concurrency: Annotated[int | None, Flag("--concurrency", panel=DEVICES)] = Field(
        default=None,
        ge=1,
        le=4096,
        description="Searches in flight on each device; by default as many as keep it busy. "
        "Doesn't change what is found.",
        examples=[16],
    )
    workers: Annotated[int | None, Flag("--workers", panel=SEARCH)] = Field(
        default=None,
        ge=0,
        le=256,
        description="Processes on this machine in which searches run; by default one a processor, "
        "once what is left is worth their start; 0: none. Doesn't change what is found.",
        examples=[4],
    )
    one_trip: Annotated[bool, Flag("--one-trip", panel=DEVICES)] = Field(
        default=False,
        description="For devices far away or that take batches: gather what all searches ask into "
        "few large requests. For boundary it also sends 4 candidates at once (option candidates), "
        "which changes what is found.",
    )
    control: Annotated[bool, Flag("--control", panel=SEARCH)] = Field(
        default=False,
        description="Then search from the same seeds with the original against itself: each "
        "trigger there is a false alarm; the report gives their rate. Every search that finds "
        "nothing goes to its limit (see --max-queries).",
        examples=[True],
    )
    control_model: Annotated[
        AbsolutePath | None, Flag("--control-model", metavar="FILE", panel=SEARCH)
    ] = Field(
        default=None,
        description="--control against this float copy of the original, perhaps of another "
        "runtime.",
        examples=["float.tflite"],
    )
    allow_disagreement: Annotated[bool, Flag("--allow-disagreement", panel=SEARCH)] = Field(
        default=False, description="End with code 0 though the pair looks wrong."
    )

    @model_validator(mode="before")
    @classmethod
    def _by_tolerance(cls, values: Any) -> Any:
        """Compare answers of real values by a tolerance, where no oracle is stated."""
        if not isinstance(values, Mapping):
            return values
        task, search = values.get("task"), _stated(values.get("search", {}))
        kind = _kind_of(task)
        if kind is None or search is None:
            return values
        tolerance = kind.tolerance(str(task), _stated(values.get("values", {})) or {})
        _check_has_tolerance(str(task), search, tolerance.refusal)
        if (
            not (kind.is_measured and kind.takes_tolerance)
            or tolerance.refusal
            or search.get("oracle", "auto") != "auto"
        ):
            return values
        if tolerance.default is None and search.get("tolerance") is None:
            raise conflict(
                "{task} needs a tolerance: the largest difference of the answers that is no deviation, in their "
                "own units, such as tolerance = 0.1 (--tolerance 0.1), or one for each element, tolerances in "
                "[values]",
                task=Key("task", f'task = "{task}"', str(task)),
            )
        return {
            **values,
            "search": {"tolerance": tolerance.default, **search, "oracle": "tolerance"},
        }

    @model_validator(mode="after")
    def _limits_have_figures(self) -> "CampaignConfig":
        if self.limits.max_confident_deviation is not None and not self.survey.enabled:
            raise conflict(
                "{limit} is about the survey: leave that on",
                limit=Key("limits.max_confident_deviation"),
            )
        if self.limits.verdict is not None and not self.survey.references:
            raise conflict(
                "{limit} needs a healthy reference: state one, --reference int8, or references = "
                '["int8"] in [survey]',
                limit=Key("limits.verdict"),
            )
        return self

    @model_validator(mode="after")
    def _tolerance_can_be_exceeded(self) -> "CampaignConfig":
        kind, tolerance = _kind_of(self.task) or SCORES, self.search.tolerance
        settings = self.settings_of(kind)
        bound = kind.tolerance(self.task, {} if settings is None else settings.model_dump())
        if tolerance is not None and tolerance >= bound.largest:
            raise conflict(
                "{tolerance} is never exceeded: {what} is at most {largest}; state less",
                tolerance=Key(
                    "search.tolerance", f"search.tolerance = {tolerance:g}", f"{tolerance:g}"
                ),
                what=bound.words,
                largest=f"{bound.largest:g}",
            )
        return self

    @model_validator(mode="after")
    def _control_is_on(self) -> "CampaignConfig":
        if self.control_model is not None and not self.control:
            raise conflict("{model} is used with control = true only", model=Key("control_model"))
        return self

    def settings_of(self, kind: AnswerKind[Any]) -> BaseModel | None:
        """Return the table with the settings of a kind of answers; None: it has none."""
        return next((table for _, table in self if type(table) is kind.settings), None)

    @property
    def without_survey(self) -> "CampaignConfig":
        """The same without a survey, its references, and an order by its answers."""
        order = None if self.seeds.prioritise == "drift" else self.seeds.prioritise
        seeds = self.seeds.model_copy(update={"prioritise": order})
        return self.model_copy(update={"survey": self.survey.off, "seeds": seeds})


def _kind_of(task: object) -> AnswerKind[Any] | None:
    """Return the kind of a stated task's answers; None where none is stated, or an unknown one."""
    return kind_of_task(task) if isinstance(task, str) and task in tasks() else None


def _check_has_tolerance(task: str, search: Mapping[str, Any], refusal: str) -> None:
    """Refuse a tolerance where answers are compared without one, unless its oracle is stated."""
    if not refusal or search.get("tolerance") is None or search.get("oracle") == "tolerance":
        return
    keys = {"tolerance": Key("search.tolerance", "search.tolerance (--tolerance)")}
    if "{task}" in refusal:
        keys["task"] = Key("task", f'task = "{task}"', task)
    raise conflict(refusal, **keys)


PATHS = (
    *((model, "path") for model in ("original", "deployed")),
    *((model, "decoder", "vocabulary") for model in ("original", "deployed")),
    *((model, "fixed_inputs") for model in ("original", "deployed")),
    ("deployed", "repair"),
    *(("seeds", key) for key in ("path", "labels")),
    *((key,) for key in ("inventory", "control_model", "out", "samples")),
    ("limits", "baseline"),
    ("survey", "references"),
    ("values", "gallery"),
    ("detection", "class_names"),
    ("search", "options", "others"),
)
"""The keys of a ``campaign.toml`` whose values are paths."""


def config_from(
    values: Mapping[str, Any], source: str, typed: Mapping[str, str] | None = None
) -> CampaignConfig:
    """Validate plain values. Raises UsageError with one sentence naming each wrong key.

    `typed` has the flag of each key that came from the command line, which is then named instead:
    ``{"search.timeout_s": "--timeout"}``.
    """
    try:
        return CampaignConfig.model_validate(values)
    except ValidationError as error:
        raise UsageError(problems_of(error, source, typed or {})) from error


def load_config(
    path: Path, overrides: Mapping[str, Any] | None = None, typed: Mapping[str, str] | None = None
) -> CampaignConfig:
    """Read a ``campaign.toml``; its relative paths start at its own folder.

    `overrides` (nested, as from flags, which `typed` names) win over the file. Raises UsageError.
    """
    loaded = toml.load(path, advice="`edgeflare init` writes one")
    values = toml.anchor_paths(loaded, PATHS, path.parent, words=(INT8,))
    return config_from(merge(values, overrides or {}), str(path), typed)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` laid on top, table by table."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged
