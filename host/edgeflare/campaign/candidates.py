"""Candidate deployed models of one original: one campaign each, with nothing else different (section 5.4.2)."""

import json
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from edgeflare._internal.files import is_unused, new_folder_name, remove_torn, write_durably
from edgeflare.campaign import single
from edgeflare.campaign.changes import check_unchanged
from edgeflare.campaign.comparison_folder import COMPARISON_NAME, FORMAT, read_comparison
from edgeflare.campaign.config import CampaignConfig, SearchConfig, config_from
from edgeflare.campaign.fleet import Asked, Connect, Prompt, fleet_devices
from edgeflare.campaign.measures import check_rankable, search_for
from edgeflare.campaign.progress import Event, Notice
from edgeflare.campaign.reporter import resume_advice
from edgeflare.campaign.resolution import RESOLVED, STRATEGY
from edgeflare.campaign.run import resume_campaign, run_campaign
from edgeflare.devices import Device, connect, runtime_for
from edgeflare.devices.inventory import find_inventory
from edgeflare.errors import (
    DeviceError,
    EdgeFlareError,
    ModelError,
    PreflightError,
    UsageError,
)
from edgeflare.store import CampaignLock, Store
from edgeflare.store.database import DATABASE_NAME
from edgeflare.store.failures import told_of
from edgeflare.store.lock import LOCK_NAMES

_SHOWN = 5
_OWN = (ModelError, PreflightError, DeviceError)
"""What may be one candidate's own failing, so that the others go on."""


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


class CandidateProgress(NamedTuple):
    """What happens with the `number`-th (from 1) of `total` candidates; without an event it begins."""

    name: str
    number: int
    total: int
    event: Event | None


Watch: TypeAlias = Callable[[CandidateProgress], None]


def silent(progress: CandidateProgress) -> None:
    """Tell nobody."""
    del progress


def run_candidates(
    like: CampaignConfig | Path,
    models: Sequence[Path],
    *,
    measure: str | None = None,
    out: Path | None = None,
    ask: Prompt | None = None,
    progress: Watch = silent,
    connect: Connect = connect,
) -> Candidates:
    """Run a campaign with each of these deployed models, one after the other, or go on with them.

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
    _check_free(folder)
    with told_of(folder, begun=False):
        folder.mkdir(parents=True, exist_ok=True)
    with CampaignLock(folder):
        _check_free(folder)
        with told_of(folder):
            remove_torn(folder)
        names = _begun(folder, config, files)
        turn = _Turn(folder, config, Asked(ask) if ask is not None else None, progress, connect)
        return Candidates(folder, turn.run(names))


def _config(like: CampaignConfig | Path, measure: str | None, out: Path | None) -> CampaignConfig:
    """Return what every candidate's campaign is run from."""
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
    """Raise UsageError for a model that nothing says the runtime of: no setting, no device, no extension."""
    if config.original.runtime is None:
        runtime_for(config.original.path)
    if config.deployed.runtime is None and any(device.runtime is None for device in devices):
        for file in files:
            runtime_for(file)


class _Turn:
    """A process's turn at a comparison, whose lock it holds."""

    def __init__(
        self,
        folder: Path,
        config: CampaignConfig,
        ask: Prompt | None,
        progress: Watch,
        connect: Connect,
    ) -> None:
        self._folder = folder
        self._config = config
        self._ask = ask
        self._progress = progress
        self._connect = connect

    def run(self, names: dict[str, Path]) -> tuple[CandidateRun, ...]:
        runs: list[CandidateRun] = []
        errors: list[EdgeFlareError] = []
        for number, (name, model) in enumerate(names.items(), 1):
            watch = self._watch(name, number, len(names))
            watch(None)
            failed = None
            try:
                self._one(name, model, watch)
            except _OWN as error:
                failed = str(error)
                errors.append(error)
                watch(Notice(f"{name} can't be run, the others go on: {error}"))
            except EdgeFlareError:
                if done := [run.name for run in runs if run.failed is None]:
                    watch(Notice(f"Finished before that: {', '.join(done)}; {self._goes_on()}"))
                raise
            runs.append(CandidateRun(name, model, self._folder / name, failed))
        if len(errors) == len(runs):
            raise _all_failed(errors)
        return tuple(runs)

    def _one(self, name: str, model: Path, watch: Callable[[Event | None], None]) -> None:
        folder = self._folder / name
        settings: dict[str, Any] = {
            "name": name,
            "ask": self._ask,
            "progress": watch,
            "connect": self._connect,
        }
        if (folder / DATABASE_NAME).is_file():
            _check_unchanged(name, folder)
            resume_campaign(folder, **settings)
            return
        with told_of(self._folder):
            if folder.exists():  # a campaign that was never quite made
                shutil.rmtree(folder)
        config = _with_model(self._config, model)
        config = config.model_copy(update={"out": folder, "search": self._resolved()})
        run_campaign(config, **settings)

    def _resolved(self) -> SearchConfig:
        """Return the search with what it was resolved to for another candidate."""
        search = self._config.search
        if search.strategy != STRATEGY:
            return search
        for database in sorted(self._folder.glob(f"*/{DATABASE_NAME}")):
            with Store.open(database.parent) as store:
                found = store.setting("search", "options")
            if all(found.get(name) is not None for name in RESOLVED):
                options = {**search.options, **{name: found[name] for name in RESOLVED}}
                return search.model_copy(update={"options": options})
        return search

    @property
    def _quoted(self) -> str:
        return shlex.quote(str(self._folder))

    def _goes_on(self) -> str:
        return f"their campaigns lie in {self._folder}, and the same command with --out {self._quoted} goes on"

    def _watch(self, name: str, number: int, total: int) -> Callable[[Event | None], None]:
        """Return what tells a candidate's events; advice to resume its campaign becomes the comparison's."""
        own = resume_advice(self._folder / name)
        ours = f"run the same comparison again with --out {self._quoted}"

        def watch(event: Event | None) -> None:
            if isinstance(event, Notice) and own in event.text:
                event = Notice(event.text.replace(own, ours))
            self._progress(CandidateProgress(name, number, total, event))

        return watch


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
    """Put on disk what is compared, and return the candidates' names, those of an earlier turn kept.

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
    said = {
        "format": FORMAT,
        "settings": settings,
        "candidates": {**known, **{name: str(file) for name, file in names.items()}},
    }
    with told_of(folder):
        write_durably(path, f"{json.dumps(said, indent=2, ensure_ascii=False)}\n".encode())
    return names


def _settings(config: CampaignConfig) -> dict[str, Any]:
    """Return everything that decides what is found, candidates aside."""
    values = config.model_dump(mode="json", exclude={"out", "concurrency", "inventory", "limits"})
    values["deployed"].pop("path")
    return values


def _check_free(folder: Path) -> None:
    if (folder / COMPARISON_NAME).is_file():
        return
    with told_of(folder):
        if not is_unused(folder, LOCK_NAMES):
            raise UsageError(
                f"{folder} exists and is neither a comparison nor an empty folder; choose another --out"
            )


def _free(stem: str, taken: set[str]) -> str:
    """Return a name for a candidate, and its folder, that no other one has."""
    return next(
        name
        for name in (stem, *(f"{stem}-{number}" for number in range(2, len(taken) + 3)))
        if name not in taken
    )
