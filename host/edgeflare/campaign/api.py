"""Runs and resumes a campaign with its control."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.files import copy_regular, is_disk_full
from edgeflare.campaign import executor
from edgeflare.campaign.context import CampaignOptions, RunContext, RunOptions
from edgeflare.campaign.control import check_control, run_control
from edgeflare.campaign.pair.input_finder import FoundInputs, found_inputs
from edgeflare.campaign.replay.run import resume_import
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.campaign.status import control_folder, replica_names
from edgeflare.errors import SeedError, StoreError
from edgeflare.store import OutcomeRecord, SeedRecord, Store
from edgeflare.store.database import translate_errors
from edgeflare.store.location import POINTER_NAME, is_address, split_address
from edgeflare.store.records import LabelledInput
from edgeflare.store.servers import add_database
from edgeflare.types import TRIGGERS, Output, Sample

if TYPE_CHECKING:
    from typing_extensions import Unpack


def run_campaign(config: CampaignConfig, **run: "Unpack[CampaignOptions]") -> Path:
    """Run a campaign to its end and return its folder.

    `run`: `ask`, `progress`, `connect`, `name` and `cluster`, see `CampaignOptions`. Raises an
    `EdgeFlareError` of any kind; what was found before it is in the folder, and `resume_campaign`
    goes on from there.

    Where `config.control` is set the control follows the search, in the folder ``control`` of the
    campaign's own: the same search for deviations of the original from itself, on this machine.
    """
    check_control(config)
    for reference in filter(is_address, config.survey.references):
        add_database(split_address(reference)[0])  # the user names it here
    return executor.start(config, after=run_control, context=RunContext(**run))


def survey_alone(config: CampaignConfig) -> CampaignConfig:
    """Return the configuration of a campaign that surveys and searches nothing."""
    nothing = {"strategy": "none", "options": {}, "operators": ()}
    return config.model_copy(
        update={
            "survey": config.survey.model_copy(update={"enabled": True}),
            "search": config.search.model_copy(update=nothing),
        }
    )


def resume_campaign(
    folder: Path,
    *,
    force: bool = False,
    changes: Mapping[str, Any] | None = None,
    typed: Mapping[str, str] | None = None,
    check_samples: bool = False,
    **run: "Unpack[CampaignOptions]",
) -> Path:
    """Resume an interrupted campaign, or do nothing where it is finished; return its folder.

    Seeds that are finished stay as they are; the others start again and end as they would have.
    `changes` (nested) are laid on top of the configuration that the campaign began with: its
    `devices` and `inventory`, its `fleet` table, `original_timeout_s`, `workers`; `typed` names
    their flags, as in `config_from`. A device that can't be reached now is left out, with a notice,
    where another one can. A control that is not finished goes on once the search is. Of a finished
    campaign all rows are read; with `check_samples` the inputs that are shown, too: a notice tells
    of those that can't be read.

    Raises UsageError, naming it, where a model, a seed file, a library, a device or the
    original's answers to fixed inputs have changed, unless `force`; StoreError where another
    process runs the campaign; else as `run_campaign`.
    """
    return executor.resume(
        folder,
        fill=resume_import,
        after=partial(run_control, force=force),
        force=force,
        changes=changes,
        typed=typed,
        check_samples=check_samples,
        context=RunContext(**run),
    )


def find_inputs(config: CampaignConfig, **run: "Unpack[RunOptions]") -> FoundInputs:
    """Return how samples enter two models, what tells it, and whether another way makes them agree.

    Both models are asked about the seeds, 120 at most unless `seeds.limit` states otherwise, in a campaign
    that is removed. `run` and what is raised are as of `run_campaign`, and of a triage.
    """
    alone = survey_alone(config)
    with tempfile.TemporaryDirectory(prefix="edgeflare-") as folder:
        update = {
            "out": Path(folder) / "inputs",
            "allow_disagreement": True,
            "seeds": config.seeds.model_copy(update={"limit": config.seeds.limit or _SEEDS}),
            "survey": alone.survey.model_copy(update={"enabled": False}),
        }
        with Store.open(run_campaign(alone.model_copy(update=update), **run)) as store:
            return found_inputs(store)


_SEEDS = 120
"""Seeds that both models are asked about where only their inputs are looked into: as many as a triage takes."""
PathOrTable: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A file, or a table of ``campaign.toml`` with the file as its ``path``."""

SeedInputs: TypeAlias = PathOrTable | NDArray[np.uint8] | Sequence[NDArray[np.uint8]]
"""A path or table; or images, uint8 [N, H, W(, C)], maybe {"images": ..., "labels": [N]}."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Trigger(LabelledInput):
    """A triggering input.

    `sample` and the seed input it was found from, `seed`, are raw: uint8 [height, width, channels],
    or mono float32 [samples] of audio. `label` is the seed's true class index where it is known.
    `replica` is the device where each searched from every seed, else "".
    `original` and `deployed` are both models' answers to `sample`, with the class indices they give
    (None of transcripts). `margin` is the smaller of both models' margins (top-1 minus top-2
    probability); `l2` and `linf` are distances to the seed, see `edgeflare.metrics`.
    """

    device: str
    sample: Sample
    seed: Sample
    label: int | None
    original: Output
    deployed: Output
    margin: float | None
    l2: float | None
    linf: int | None

    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays are not compared


class SearchResult:
    """The result of a search: a view on its campaign's folder, which other functions accept, too.

    A temporary folder is deleted with this object or at the end of the process; `save` keeps a copy
    of it.
    """

    def __init__(self, folder: Path, temporary: Path | None = None) -> None:
        self.folder = folder
        if temporary is not None:
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)

    @property
    def triggers(self) -> Iterator[Trigger]:
        """The triggering inputs in the order of the seeds, read one by one. Raises StoreError."""
        with Store.open(self.folder) as store:
            seeds = {seed.id: seed for seed in store.seeds()}
            for replica in replica_names(store):
                for outcome in store.outcomes_of(replica):
                    if outcome.status in TRIGGERS:
                        yield _trigger(store, seeds[outcome.seed_id], outcome)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Copy the campaign to an empty or new folder; return its path.

        Raises StoreError, also where its database or samples are not in its folder.
        """
        target = Path(folder).absolute()
        if (self.folder / POINTER_NAME).exists():
            raise StoreError(
                f"{self.folder} can't be copied, since its {POINTER_NAME} names data that are not in "
                "it: give `folder` to `search` to keep the campaign there"
            )
        Store.check_free(target)
        with translate_errors(target):
            try:
                shutil.copytree(self.folder, target, dirs_exist_ok=True, copy_function=_copy)
            except shutil.Error as error:  # of a folder: `_copy` raises those of files
                name, _, why = error.args[0][0]
                raise StoreError(f"{name} can't be copied: {why}") from error
        for copy in (target, control_folder(target)):
            if copy.is_dir():
                _move(copy, self.folder.absolute(), target)
        return target


def _copy(source: str, target: str) -> None:
    """Copy a file for `shutil.copytree`, which would collect OSErrors as texts. Raises StoreError."""
    try:
        copy_regular(source, target)
    except OSError as error:
        with translate_errors(Path(target if is_disk_full(error) else source), resumable=False):
            raise


def search(
    original: PathOrTable,
    deployed: PathOrTable,
    seeds: SeedInputs,
    device: str | Sequence[str] = "local",
    *,
    folder: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> SearchResult:
    """Search from every seed input for one on which the model on `device` decides differently.

    This runs a campaign in `folder`, or in a temporary folder where None. Models and seeds are
    files, or tables as in ``campaign.toml`` (``{"path": "model.onnx", "output": "logits"}``); seeds
    may be images in memory, too. `device` is what ``--device`` takes, one or several. `settings`
    are entries of the `search` table, such as ``strategy="dflare"`` or ``max_queries=500``, and
    other entries of ``campaign.toml``, such as ``concurrency=4`` or
    ``fleet={"mode": "replicate"}``; ``survey={"enabled": True}`` surveys the seeds first. `ask`,
    `progress` and `connect` are as `run_campaign` takes them.

    Images in memory are kept as an ``.npz`` in the campaign's folder. Raises UsageError for a
    setting that is wrong, and every `EdgeFlareError` that `run_campaign` raises; what was found
    before is in `folder` then.
    """
    run: Any = {name: settings.pop(name) for name in RunOptions.__annotations__ if name in settings}
    temporary = Path(tempfile.mkdtemp(prefix="edgeflare-"))
    try:
        out = temporary / "campaign" if folder is None else Path(folder).absolute()
        tables = {
            name: settings.pop(name) for name in CampaignConfig.model_fields if name in settings
        }
        tables.setdefault("survey", {"enabled": False})
        images, seeds_table = _seeds_table(seeds, temporary / f"{out.name}-seeds.npz")
        config = config_from(
            {
                **tables,
                "original": _table(original),
                "deployed": _table(deployed),
                "seeds": seeds_table,
                "devices": device if isinstance(device, str) else tuple(device),
                "out": out,
                "search": {**tables.get("search", {}), **settings},
            },
            "search",
        )
        if images:
            _write(images, config.seeds.path)
        check_control(config)
        executor.start(
            config,
            keep_seeds=bool(images),
            after=run_control,
            context=RunContext(name=config.deployed.path.stem, **run),
        )
        if images:
            config.seeds.path.unlink()  # the folder has a copy
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return SearchResult(out, temporary)


def _move(campaign: Path, old: Path, new: Path) -> None:
    """Correct the paths in the configuration of a campaign that was copied from below `old`."""
    with Store.open(campaign) as store:
        config = store.campaign
        seeds = Path(config["seeds"]["path"])
        if seeds.is_relative_to(old):
            config["seeds"]["path"] = str(new / seeds.relative_to(old))
        store.set_campaign({**config, "out": str(campaign)})


def _trigger(store: Store, seed: SeedRecord, outcome: OutcomeRecord) -> Trigger:
    assert outcome.original is not None  # noqa: S101 - a trigger has both answers
    assert outcome.deployed is not None  # noqa: S101
    return Trigger(
        seed_id=seed.id,
        replica=outcome.replica,
        device=outcome.device_name,
        sample=store.get_sample(outcome.trigger or seed.sample),
        seed=store.get_sample(seed.sample),
        label=seed.label,
        original=outcome.original,
        deployed=outcome.deployed,
        original_label=outcome.original_label,
        deployed_label=outcome.deployed_label,
        margin=outcome.severity,
        l2=outcome.l2,
        linf=outcome.linf,
    )


def _table(given: PathOrTable) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else {"path": Path(given)}


def _seeds_table(seeds: SeedInputs, file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return images in memory, with labels, and the `seeds` table, where `file` is to have them."""
    if isinstance(seeds, str | os.PathLike):
        return {}, {"path": Path(seeds)}
    table = dict(seeds) if isinstance(seeds, Mapping) else {"images": seeds}
    if "images" not in table:
        return {}, table
    arrays = {name: table.pop(name) for name in ("images", "labels") if name in table}
    return arrays, {**table, "path": file}


def _write(arrays: dict[str, Any], file: Path) -> None:
    try:
        np.savez(file, **arrays)
    except ValueError as error:
        raise SeedError(
            "seeds: the images are no array of numbers; give all the same shape and dtype"
        ) from error
    except OSError as error:
        raise SeedError(f"can't write the seeds to {file}: {error.strerror}") from error
