"""Candidate deployed models of one original: a campaign each, all else equal (section 5.4.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from edgeflare._internal.files import new_folder_name
from edgeflare._internal.text import first_of
from edgeflare.answers import LABELS, kind_of_task
from edgeflare.answers.text_interfaces import stated_task
from edgeflare.campaign import executor
from edgeflare.campaign.batch import (
    CampaignRunner,
    Report,
    begin_campaign,
    description,
    opened_folder,
    write_description,
)
from edgeflare.campaign.context import RunContext
from edgeflare.campaign.events import BatchWatch, Notice, silent
from edgeflare.campaign.fleet import fleet_devices
from edgeflare.campaign.pair.health import ranking_problem
from edgeflare.campaign.provenance import check_unchanged
from edgeflare.campaign.resolution import STRATEGY, resolved_as_in
from edgeflare.campaign.settings.config import CampaignConfig, SearchConfig, config_from
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.devices import ConnectOptions, Device, runtime_for
from edgeflare.devices.inventory import find_inventory
from edgeflare.errors import DeviceError, EdgeFlareError, ModelError, PreflightError, UsageError
from edgeflare.store import Store
from edgeflare.store.location import is_campaign
from edgeflare.store.lock import LOCK_NAMES
from edgeflare.words.campaign import OTHERS_GO_ON

if TYPE_CHECKING:
    from typing_extensions import Unpack

Measure: TypeAlias = Literal["disagreement", "severity", "queries"]
"""Of the most severe trigger from a seed: how far both answers are apart, or the smaller of both
models' margins; or the queries to the first one."""

DEVICE_BUDGET = 8
"""Default number of device queries for each seed where the most severe trigger is searched for.

Measured in docs/research/candidates.md.
"""


def _check_measure(measure: str) -> None:
    """Raise UsageError for an unknown measure."""
    if measure not in get_args(Measure):
        raise UsageError(f"there is no measure {measure}; take {', '.join(get_args(Measure))}")


def check_level(level: float) -> None:
    """Raise UsageError unless a confidence lies within (0, 1)."""
    if not 0 < level < 1:
        raise UsageError(f"level is {level:g}, but a confidence lies above 0 and below 1")


def check_rankable(measure: str, strategy: str, label_only: Sequence[str] = ()) -> None:
    """Raise UsageError where this strategy, or the models' outputs, can't give `measure`.

    `label_only` names the candidates that return a class and no probabilities.
    """
    _check_measure(measure)
    if measure == "queries" and strategy == STRATEGY:
        raise UsageError(
            "the boundary search finds a trigger in one or two queries, whatever the model: its "
            "queries don't rank; take another measure, or the strategy dflare"
        )
    if label_only and measure != "queries":
        raise UsageError(
            f"{' and '.join(label_only)}: the deployed model returns a class and no probabilities, "
            f"so that there is no {measure}; rank by queries, with the strategy dflare"
        )


def search_for(measure: str, search: SearchConfig) -> SearchConfig:
    """Return `search` with its open settings chosen for `measure`.

    "queries": the paper's, dflare. Else a search for the most severe trigger: boundary with a
    device budget. A strategy or budget that was stated stays. Raises UsageError for an unknown
    measure.
    """
    _check_measure(measure)
    if measure == "queries":
        stated = "strategy" in search.model_fields_set
        return search if stated else search.model_copy(update={"strategy": "dflare"})
    if search.strategy != STRATEGY or search.options.get("device_budget") is not None:
        return search
    budget = min(DEVICE_BUDGET, search.max_queries or DEVICE_BUDGET)
    return search.model_copy(update={"options": {**search.options, "device_budget": budget}})


COMPARISON_NAME = "comparison.json"


def candidates_named(paths: Sequence[Path], *, level: float = 0.95) -> tuple[Path, ...]:
    """Return the model files and campaign folders that these paths stand for, in their order.

    The folder of a comparison stands for its candidates' campaigns; other files in it, which a
    shell's ``*`` names, too, are ignored. Reads only, so that what can't be compared is known
    before anything is run: raises UsageError for a `level` outside (0, 1) and for fewer than two
    candidates, StoreError for a folder that is neither a campaign nor a comparison.
    """
    check_level(level)
    found = [one for path in paths for one in _campaigns_or_model(Path(path).expanduser())]
    if len(found) < 2:
        raise UsageError(
            "compare needs two candidates at least: model files, campaigns' folders, or a "
            "comparison's"
        )
    return tuple(found)


def _read_comparison(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of a comparison, and its candidates' files by name. Raises StoreError."""
    with description(path, "run the comparison anew in another folder") as values:
        return dict(values["settings"]), {str(k): str(v) for k, v in values["candidates"].items()}


def _campaigns_or_model(path: Path) -> list[Path]:
    if not path.is_dir():
        own = path.name in (COMPARISON_NAME, *LOCK_NAMES)
        return [] if own and (path.parent / COMPARISON_NAME).is_file() else [path]
    if (path / COMPARISON_NAME).is_file() and not is_campaign(path):
        _, candidates = _read_comparison(path / COMPARISON_NAME)
        found = [path / name for name in candidates if is_campaign(path / name)]
        if not found:
            raise UsageError(f"{path} is a comparison in which no candidate's campaign has begun")
        return found
    with Store.open(path):  # raises where it is no campaign
        return [path]


_CANDIDATE_ERRORS = (ModelError, PreflightError, DeviceError)
"""Errors that concern one candidate alone: the other candidates are run all the same."""


@dataclass(frozen=True)
class CandidateRun:
    """A candidate's `model` file and its campaign's `folder`; `failed`: why it could not be run."""

    name: str
    model: Path
    folder: Path
    failed: str | None = None


@dataclass(frozen=True)
class Candidates:
    """The runs of all candidates, in the order they were named; their campaigns are in `folder`."""

    folder: Path
    runs: tuple[CandidateRun, ...]

    @property
    def failed(self) -> dict[str, str]:
        """Why those that failed could not be run, by name."""
        return {run.name: run.failed for run in self.runs if run.failed is not None}

    @property
    def finished(self) -> tuple[CandidateRun, ...]:
        """Those that did not fail."""
        return tuple(run for run in self.runs if run.failed is None)


def run_candidates(
    like: CampaignConfig | Path,
    models: Sequence[Path | ModelConfig],
    *,
    measure: str | None = None,
    out: Path | None = None,
    progress: BatchWatch = silent,
    **reach: "Unpack[ConnectOptions]",
) -> Candidates:
    """Run, or resume, a campaign with each of these deployed models, one after the other.

    Everything but the file is as `like` says, its `deployed` options included: a configuration, or
    a campaign's folder, whose search is then repeated as it was. A model that is given as a
    `ModelConfig` takes the place of all `deployed` options. Of a configuration the search is
    made fit for `measure`, as far as strategy and budget are left open: "queries" has the paper's,
    dflare; "disagreement", the default, and "severity" have boundary with a device budget of 8
    queries a seed, of models that return text without one: that search ends with its first trigger.
    What the boundary search itself leaves open is resolved once, with the first model, for all.

    The campaigns lie in `out` (by default the configuration's, else a new folder under
    ``comparisons``), which may exist from an earlier run: what is finished there stays, what isn't
    goes on, and more candidates may be named. A model that can't be loaded, doesn't fit or can't be
    run on the device is reported as a notice, and the others go on.

    Raises UsageError where a setting or a file has changed since the folder was made; before
    anything is run where a model is missing, named twice or of no known runtime, and where the
    search can't tell the measure; the first failure where no candidate could be run; and what
    concerns all of them: StoreError, SeedError, InventoryError, StrategyError.
    """
    config = _config(like, measure, out)
    if not models:
        raise UsageError("name the candidates' model files")
    candidates = [_candidate(config, model) for model in models]
    files = [candidate.path for candidate in candidates]
    if twice := next((file for file in files if files.count(file) > 1), None):
        raise UsageError(f"{twice} is named twice; name each candidate once")
    for candidate in candidates:
        executor.check_files(_with_model(config, candidate))
    _check_runtimes(config, candidates, fleet_devices(config))
    config = _without_budget_for_text(config, like)
    config = config.model_copy(update={"inventory": find_inventory(config.inventory)})
    folder = (config.out or new_folder_name("comparisons", config.original.path.stem)).absolute()
    with opened_folder(folder, COMPARISON_NAME, "a comparison"):
        names = _write_candidates(folder, config, files)
        named = dict(zip(names, candidates, strict=True))
        return Candidates(
            folder,
            _Comparison(folder, config, CampaignRunner(RunContext(**reach))).run(named, progress),
        )


def _config(like: CampaignConfig | Path, measure: str | None, out: Path | None) -> CampaignConfig:
    """Return the configuration shared by the candidates' campaigns."""
    if isinstance(like, CampaignConfig):
        is_scored = like.deployed.output not in LABELS.outputs
        wanted = measure or ("disagreement" if is_scored else "queries")
        search = search_for(wanted, like.search)
        config = like.model_copy(update={"search": search, "out": out or like.out})
        if "survey" not in like.model_fields_set:  # no candidate needs it to be ranked
            config = config.without_survey
    else:
        with Store.open(like) as store:
            config = config_from({**executor.WITHOUT_SURVEY, **store.campaign}, str(like))
            is_scored = store.kind.is_scored
        config = config.model_copy(update={"out": out})
    if measure is not None:
        check_rankable(measure, config.search.strategy, [] if is_scored else ["these candidates"])
    return config


def _without_budget_for_text(config: CampaignConfig, like: CampaignConfig | Path) -> CampaignConfig:
    """Return the configuration; of models that return text without a budget that wasn't stated.

    Raises ModelError where the original can't be loaded.
    """
    if not isinstance(like, CampaignConfig) or config.search.options == like.search.options:
        return config
    with executor.opened_original(config) as original:
        if kind_of_task(stated_task(config, original.decoder)).takes_device_budget:
            return config
    search = config.search.model_copy(update={"options": like.search.options})
    return config.model_copy(update={"search": search})


def _candidate(config: CampaignConfig, model: Path | ModelConfig) -> ModelConfig:
    if isinstance(model, ModelConfig):
        return model
    path = Path(model).expanduser().absolute()
    is_own = path == config.deployed.path
    repair = config.deployed.repair if is_own else None  # it is made for one model
    return config.deployed.model_copy(update={"path": path, "repair": repair})


def _check_runtimes(
    config: CampaignConfig, candidates: Sequence[ModelConfig], devices: Sequence[Device]
) -> None:
    """Raise UsageError for a model without a runtime by settings, device or extension."""
    if config.original.runtime is None:
        runtime_for(config.original.path)
    if any(device.runtime is None for device in devices):
        for candidate in candidates:
            if candidate.runtime is None:
                runtime_for(candidate.path)


class _Comparison:
    """A comparison whose lock this process holds."""

    def __init__(self, folder: Path, config: CampaignConfig, campaigns: CampaignRunner) -> None:
        self._folder = folder
        self._config = config
        self._campaigns = campaigns

    def run(self, names: dict[str, ModelConfig], progress: BatchWatch) -> tuple[CandidateRun, ...]:
        runs: list[CandidateRun] = []
        errors: list[EdgeFlareError] = []
        for number, (name, model) in enumerate(names.items(), 1):
            folder = self._folder / name
            report = begin_campaign(progress, name, folder, number, len(names))
            failed = None
            try:
                self._one(name, model, folder, report)
                _check_usable(folder)
            except _CANDIDATE_ERRORS as error:
                failed = str(error)
                errors.append(error)
                report(Notice(OTHERS_GO_ON.format(name, error)))
            report(ended="failed" if failed else "finished")
            runs.append(CandidateRun(name, model.path, folder, failed))
        if len(errors) == len(runs):
            raise _all_failed(errors)
        return tuple(runs)

    def _one(self, name: str, model: ModelConfig, folder: Path, report: Report) -> None:
        if is_campaign(folder):
            _check_unchanged(name, folder)
            self._campaigns.resume(folder, name=name, progress=report)
            return
        config = _with_model(self._config, model).model_copy(update={"search": self._resolved()})
        self._campaigns.run(config, folder, name=name, progress=report)

    def _resolved(self) -> SearchConfig:
        """Return the search with the options that were resolved for another candidate."""
        search = self._config.search
        if search.strategy != STRATEGY:
            return search
        campaigns = sorted(path for path in self._folder.iterdir() if is_campaign(path))
        found = (resolved_as_in(campaign, search) for campaign in campaigns)
        return next((one for one in found if one is not None), search)


def _check_usable(folder: Path) -> None:
    """Raise ModelError where a candidate's answers can't be used."""
    with Store.open(folder) as store:
        if problem := ranking_problem(store):
            raise ModelError(f"{store.folder} can't be ranked: {problem.words}")


def _check_unchanged(name: str, folder: Path) -> None:
    """Raise UsageError where a model, a seed file or a library is not what it was."""
    with Store.open(folder) as store:
        changes = check_unchanged(config_from(store.campaign, str(folder)), store)
    if changes:
        raise UsageError(
            f"since {name} was run {first_of(changes)}; what is found from now on might not "
            "compare with what was found before: undo the change, or choose another --out to run "
            "all anew"
        )


def _all_failed(errors: Sequence[EdgeFlareError]) -> EdgeFlareError:
    first = errors[0]
    if all(str(error) == str(first) for error in errors):
        return first
    return type(first)("no candidate could be run: " + first_of([str(error) for error in errors]))


def _with_model(config: CampaignConfig, model: ModelConfig) -> CampaignConfig:
    return config.model_copy(update={"deployed": model})


def _write_candidates(folder: Path, config: CampaignConfig, files: Sequence[Path]) -> list[str]:
    """Write the comparison's description; return the candidates' names, earlier ones unchanged.

    Raises UsageError where the folder was made with other settings.
    """
    path = folder / COMPARISON_NAME
    settings = _settings(config)
    known: dict[str, str] = {}
    if path.is_file():
        before, known = _read_comparison(path)
        changed = [key for key in settings if before.get(key) != settings[key]]
        if changed:
            raise UsageError(
                f"the comparison in {folder} was begun with other settings ({', '.join(changed)}); "
                "state them as before, or choose another --out"
            )
    name_of = {file: name for name, file in known.items()}
    names: dict[str, Path] = {}
    for file in files:
        name = name_of.get(str(file)) or _free(file.stem, {*known, *names})
        names[name] = file
    candidates = {**known, **{name: str(file) for name, file in names.items()}}
    write_description(path, {"settings": settings, "candidates": candidates})
    return list(names)


def _settings(config: CampaignConfig) -> dict[str, Any]:
    """Return every setting that affects the results, except for the candidates."""
    without = {"out", "concurrency", "workers", "inventory", "limits"}
    values = config.model_dump(mode="json", exclude=without)
    values["deployed"].pop("path")
    return values


def _free(stem: str, taken: set[str]) -> str:
    """Return a name for a candidate, and its folder, that no other one has."""
    return next(
        name
        for name in (stem, *(f"{stem}-{number}" for number in range(2, len(taken) + 3)))
        if name not in taken
    )
