"""Candidate deployed models of one original: one campaign each, with nothing else different (section 5.4.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflare._internal.files import new_folder_name
from edgeflare.campaign import single
from edgeflare.campaign.batch import (
    BatchWatch,
    CampaignRunner,
    Report,
    begin_campaign,
    opened_folder,
    silent,
    write_description,
)
from edgeflare.campaign.changes import check_unchanged
from edgeflare.campaign.comparison_folder import COMPARISON_NAME, read_comparison
from edgeflare.campaign.config import CampaignConfig, SearchConfig, config_from
from edgeflare.campaign.fleet import Connect, Prompt, fleet_devices
from edgeflare.campaign.measures import check_rankable, search_for
from edgeflare.campaign.progress import Notice
from edgeflare.campaign.resolution import STRATEGY, resolved_as_in
from edgeflare.devices import Device, connect, runtime_for
from edgeflare.devices.inventory import find_inventory
from edgeflare.errors import (
    DeviceError,
    EdgeFlareError,
    ModelError,
    PreflightError,
    UsageError,
)
from edgeflare.store import Store
from edgeflare.store.database import DATABASE_NAME

_SHOWN = 5
_OWN = (ModelError, PreflightError, DeviceError)
"""Errors that concern one candidate alone: the other candidates are run all the same."""


@dataclass(frozen=True)
class CandidateRun:
    """A candidate's `model` file and its campaign's `folder`; `failed` says why it could not be run."""

    name: str
    model: Path
    folder: Path
    failed: str | None = None


@dataclass(frozen=True)
class Candidates:
    """What came of all candidates, in the order they were named; their campaigns are in `folder`."""

    folder: Path
    runs: tuple[CandidateRun, ...]

    @property
    def finished(self) -> tuple[CandidateRun, ...]:
        """Those that did not fail."""
        return tuple(run for run in self.runs if run.failed is None)


def run_candidates(
    like: CampaignConfig | Path,
    models: Sequence[Path],
    *,
    measure: str | None = None,
    out: Path | None = None,
    ask: Prompt | None = None,
    progress: BatchWatch = silent,
    connect: Connect = connect,
) -> Candidates:
    """Run, or resume, a campaign with each of these deployed models, one after the other.

    Everything but the file is as `like` says, its `deployed` options included: a configuration, or a
    campaign's folder, whose search is then repeated as it was. Of a configuration the search is made fit
    for `measure`, as far as strategy and budget are left open: "queries" has the paper's, dflare;
    "disagreement", the default, and "severity" have boundary with a device budget of 8 queries a seed, of speech
    recognisers without one: their search ends with its first trigger. What
    the boundary search itself leaves open is resolved once, with the first model, for all.

    The campaigns lie in `out` (by default the configuration's, else a new folder under ``comparisons``),
    which may have been begun before: what is finished there stays, what isn't goes on, and more candidates
    may be named. A model that can't be loaded, doesn't fit or can't be run on the device is told as a
    notice, and the others go on.

    Raises UsageError where a setting or a file is not what it was when the folder was begun; before anything
    is run where a model is missing, named twice or of no known runtime, and where the search can't tell the
    measure; the first failure where no candidate could be run; and what concerns
    all of them: StoreError, SeedError, InventoryError, StrategyError.
    """
    config = _config(like, measure, out)
    if not models:
        raise UsageError("name the candidates' model files")
    files = [Path(model).expanduser().absolute() for model in models]
    if twice := next((one for one in files if files.count(one) > 1), None):
        raise UsageError(f"{twice} is named twice; name each candidate once")
    for file in files:
        single.check_files(_with_model(config, file))
    _check_runtimes(config, files, fleet_devices(config))
    config = _as_stated_of_words(config, like)
    config = config.model_copy(update={"inventory": find_inventory(config.inventory)})
    folder = (config.out or new_folder_name("comparisons", config.original.path.stem)).absolute()
    with opened_folder(folder, COMPARISON_NAME, "a comparison"):
        names = _begun(folder, config, files)
        return Candidates(
            folder, _Comparison(folder, config, CampaignRunner(ask, connect)).run(names, progress)
        )


def _config(like: CampaignConfig | Path, measure: str | None, out: Path | None) -> CampaignConfig:
    """Return the configuration shared by the candidates' campaigns."""
    if isinstance(like, CampaignConfig):
        labels_only = like.deployed.output == "label"
        wanted = measure or ("queries" if labels_only else "disagreement")
        search = search_for(wanted, like.search)
        config = like.model_copy(update={"search": search, "out": out or like.out})
    else:
        with Store.open(like) as store:
            config = config_from(store.campaign, str(like))
        config = config.model_copy(update={"out": out})
    if measure is not None:
        labels_only = config.deployed.output == "label"
        check_rankable(measure, config.search.strategy, ["these candidates"] if labels_only else [])
    return config


def _as_stated_of_words(config: CampaignConfig, like: CampaignConfig | Path) -> CampaignConfig:
    """Return the configuration without a device budget that wasn't stated, where models are speech recognisers.

    Raises ModelError where the original can't be loaded.
    """
    if not isinstance(like, CampaignConfig) or config.search.options == like.search.options:
        return config
    if not _transcribes(config):
        return config
    search = config.search.model_copy(update={"options": like.search.options})
    return config.model_copy(update={"search": search})


def _transcribes(config: CampaignConfig) -> bool:
    stated = config.original
    if stated.output not in ("auto", "transcript") or stated.decoder is not None:
        return stated.output in ("auto", "transcript")
    with single.opened_original(config) as original:
        return original.decoder is not None


def _check_runtimes(
    config: CampaignConfig, files: Sequence[Path], devices: Sequence[Device]
) -> None:
    """Raise UsageError for a model whose runtime is unknown: by no setting, no device, no file extension."""
    if config.original.runtime is None:
        runtime_for(config.original.path)
    if config.deployed.runtime is None and any(device.runtime is None for device in devices):
        for file in files:
            runtime_for(file)


class _Comparison:
    """A comparison whose lock this process holds."""

    def __init__(self, folder: Path, config: CampaignConfig, campaigns: CampaignRunner) -> None:
        self._folder = folder
        self._config = config
        self._campaigns = campaigns

    def run(self, names: dict[str, Path], progress: BatchWatch) -> tuple[CandidateRun, ...]:
        runs: list[CandidateRun] = []
        errors: list[EdgeFlareError] = []
        for number, (name, model) in enumerate(names.items(), 1):
            folder = self._folder / name
            report = begin_campaign(progress, name, folder, number, len(names))
            failed = None
            try:
                self._one(name, model, folder, report)
            except _OWN as error:
                failed = str(error)
                errors.append(error)
                report(Notice(f"{name} can't be run, the others go on: {error}"))
            report(ended="failed" if failed else "finished")
            runs.append(CandidateRun(name, model, folder, failed))
        if len(errors) == len(runs):
            raise _all_failed(errors)
        return tuple(runs)

    def _one(self, name: str, model: Path, folder: Path, report: Report) -> None:
        if (folder / DATABASE_NAME).is_file():
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
        databases = sorted(self._folder.glob(f"*/{DATABASE_NAME}"))
        found = (resolved_as_in(database.parent, search) for database in databases)
        return next((one for one in found if one is not None), search)


def _check_unchanged(name: str, folder: Path) -> None:
    """Raise UsageError where a model, a seed file or a library is not what it was."""
    with Store.open(folder) as store:
        changes = check_unchanged(config_from(store.campaign, str(folder)), store)
    if changes:
        raise UsageError(
            f"since {name} was run {'; '.join(changes[:_SHOWN])}. What is found from now on might not compare "
            "with what was found before: undo the change, or choose another --out to run all anew"
        )


def _all_failed(errors: Sequence[EdgeFlareError]) -> EdgeFlareError:
    first = errors[0]
    if all(str(error) == str(first) for error in errors):
        return first
    return type(first)("no candidate could be run: " + "; ".join(map(str, errors)))


def _with_model(config: CampaignConfig, model: Path) -> CampaignConfig:
    deployed = config.deployed.model_copy(update={"path": model})
    return config.model_copy(update={"deployed": deployed})


def _begun(folder: Path, config: CampaignConfig, files: Sequence[Path]) -> dict[str, Path]:
    """Write the description of the comparison; return the candidates' names, earlier ones unchanged.

    Raises UsageError where the folder was begun with other settings.
    """
    path = folder / COMPARISON_NAME
    settings = _settings(config)
    known: dict[str, str] = {}
    if path.is_file():
        before, known = read_comparison(path)
        changed = [key for key in settings if before.get(key) != settings[key]]
        if changed:
            raise UsageError(
                f"the comparison in {folder} was begun with other settings ({', '.join(changed)}); state them "
                "as before, or choose another --out"
            )
    name_of = {file: name for name, file in known.items()}
    names: dict[str, Path] = {}
    for file in files:
        name = name_of.get(str(file)) or _free(file.stem, {*known, *names})
        names[name] = file
    candidates = {**known, **{name: str(file) for name, file in names.items()}}
    write_description(path, {"settings": settings, "candidates": candidates})
    return names


def _settings(config: CampaignConfig) -> dict[str, Any]:
    """Return every setting that affects the results, except for the candidates."""
    values = config.model_dump(mode="json", exclude={"out", "concurrency", "inventory", "limits"})
    values["deployed"].pop("path")
    return values


def _free(stem: str, taken: set[str]) -> str:
    """Return a name for a candidate, and its folder, that no other one has."""
    return next(
        name
        for name in (stem, *(f"{stem}-{number}" for number in range(2, len(taken) + 3)))
        if name not in taken
    )
