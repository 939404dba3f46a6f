"""The control of a campaign: the same search, where every trigger found is a false alarm.

It searches from the same seeds for deviations of the original from itself, or from a float copy of it,
computed in another way so that the last bits of the answers differ. What decides differently there does
so by rounding alone, and not by compression. The control is a campaign of its own, in the folder
``control`` of the campaign's.
"""

import shutil
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from edgeflare.campaign import single
from edgeflare.campaign.config import CampaignConfig, FleetConfig, ModelConfig
from edgeflare.campaign.fleet import Campaigner, Fleet
from edgeflare.campaign.pair import resolve_pair
from edgeflare.campaign.progress import Event, Notice, Stage
from edgeflare.campaign.progress import Fleet as FleetEvent
from edgeflare.campaign.reporter import Reporter, resume_advice
from edgeflare.campaign.stages import not_interrupted, state_after
from edgeflare.devices import LOCAL, DeviceStatus, runtime_for
from edgeflare.store import SeedInput, Store
from edgeflare.store.database import DATABASE_NAME
from edgeflare.store.failures import told_of
from edgeflare.store.lock import LOCK_NAMES
from edgeflare.types import Status

CONTROL_NAME = "control"
FALSE_ALARMS = (Status.FOUND, Status.SEED_DEVIATES)
_BATCH = 256


class Alarms(NamedTuple):
    """What the searches of a control came to, without those that failed.

    `largest_margin`: of each false alarm the smaller of both models' margins, and of those the largest;
    a higher margin floor lets none of them count.
    """

    searches: int
    false_alarms: int
    largest_margin: float | None


def control_folder(folder: Path) -> Path:
    """Return where a campaign's control is."""
    return folder / CONTROL_NAME


def control_config(config: CampaignConfig, folder: Path) -> CampaignConfig:
    """Return the configuration of the control of a campaign in this folder."""
    return config.model_copy(
        update={
            "deployed": _deployed(config),
            "devices": (LOCAL.name,),
            "python": None,
            "inventory": None,
            "out": control_folder(folder),
            "fleet": FleetConfig(),
            "concurrency": None,
            "one_trip": False,
            "control": False,
            "control_model": None,
        }
    )


def check_control(config: CampaignConfig) -> None:
    """Raise what the control would once the search is done: a model that can't be run, or doesn't fit."""
    if not config.control:
        return
    single.check_files(config)
    config = control_config(config, Path())
    with ExitStack() as stack:
        original = stack.enter_context(single.opened_original(config))
        fleet = stack.enter_context(
            Fleet.open(
                [LOCAL],
                config,
                Campaigner(uuid.uuid4().hex, "a control"),
                ask=None,
                uploading=_unheard,
                tell=_unheard,
                need_all=True,
            )
        )
        resolve_pair(config, original, fleet)


def run_control(
    config: CampaignConfig, store: Store, reporter: Reporter, *, force: bool = False
) -> None:
    """Run the control of a campaign whose search is finished, or go on with it.

    Raises an `EdgeFlareError` of any kind; `resume_campaign` goes on from there.
    """
    folder = control_folder(store.folder)
    seen: tuple[DeviceStatus, ...] = ()

    def pass_on(event: Event) -> None:
        nonlocal seen
        if isinstance(event, FleetEvent):
            seen = event.devices
        elif isinstance(event, Stage):
            reporter(Stage("control", f"{event.name}: {event.detail}", event.total))
        elif not isinstance(event, Notice):
            reporter(event)
        elif resume_advice(folder) not in event.text:  # the whole campaign is to be resumed
            reporter(Notice(f"control: {event.text}"))

    reporter.watch(store, lambda: seen)
    try:
        if _is_begun(store):
            single.go_on(folder, fill=partial(_fill, store), force=force, progress=pass_on)
        else:
            single.begin(
                control_config(config, store.folder),
                devices=[LOCAL],
                fill=partial(_fill, store),
                name=f"{store.folder.name}, its control",
                progress=pass_on,
            )
        _tell(store, config, reporter)
        store.set_fact("control_finished", True)
    except BaseException as error:
        with not_interrupted():
            reporter.end(state_after(error), str(error))
            reporter(
                Notice(
                    "the search is finished and kept, its control is not; "
                    + resume_advice(store.folder)
                )
            )
        raise
    reporter.end("finished")


def alarms_in(control: Store) -> Alarms:
    """Count the false alarms of a control."""
    searches, margins, found = 0, [], 0
    for outcome in control.outcomes():
        searches += outcome.status is not Status.FAILED
        if outcome.status not in FALSE_ALARMS:
            continue
        found += 1
        both = (outcome.original_margin, outcome.deployed_margin)
        known = [margin for margin in both if margin is not None]
        if known:
            margins.append(min(known))
    return Alarms(searches, found, max(margins, default=None))


def _tell(store: Store, config: CampaignConfig, reporter: Reporter) -> None:
    """Warn of false alarms, once."""
    with Store.open(control_folder(store.folder)) as control:
        alarms = alarms_in(control)
    if not alarms.false_alarms:
        return
    floor = config.search.margin_floor
    text = (
        f"the control raised {alarms.false_alarms} false alarms in {alarms.searches} searches: rounding "
        f"alone makes the original decide differently there at the margin floor of {floor:g}, so that "
        "triggers of this campaign may be due to rounding, too"
    )
    if alarms.largest_margin is not None:
        text += (
            f"; search anew with --margin-floor above {alarms.largest_margin:.2g}, the largest margin "
            "of a false alarm"
        )
    if text not in store.notices():
        reporter.notice(text)


def _deployed(config: CampaignConfig) -> ModelConfig:
    """Return the model that stands in for the deployed one."""
    original, path = config.original, config.control_model
    if path is None or path == original.path:
        runtime = original.runtime or runtime_for(original.path)
        options = {**original.options, **_other_arithmetic(runtime, original.options)}
        return original.model_copy(update={"runtime": runtime, "options": options})
    # What is stated of the original's pixels holds for its copy; how its file lays them out may differ.
    return ModelConfig(
        path=path,
        input=original.input.model_copy(update={"layout": None}),
        output=original.output,
    )


def _other_arithmetic(runtime: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options that make a runtime compute the same model in another order."""
    if runtime == "onnx":
        plain = options.get("graph_optimization") == "none"
        return {"graph_optimization": "all" if plain else "none"}
    if options.get("kernels") == "reference":
        return {"kernels": "default"}
    return {"delegate": not options.get("delegate", True)}


def _is_begun(store: Store) -> bool:
    """Whether there is a control to go on with; what is left of one that was never quite made goes."""
    folder = control_folder(store.folder)
    if store.fact("control_begun"):
        return (folder / DATABASE_NAME).is_file()
    with told_of(folder):
        if folder.is_dir() and all(map(_is_of_a_campaign, folder.iterdir())):
            shutil.rmtree(folder)
    return False


def _is_of_a_campaign(path: Path) -> bool:
    return path.name in LOCK_NAMES or path.name.startswith(("samples", DATABASE_NAME))


def _fill(store: Store, control: Store) -> None:
    """Give the control the campaign's own seeds, which need not be where they were read from any more."""
    store.set_fact("control_begun", True)
    known = control.seed_ids()
    missing = (seed for seed in store.seeds() if seed.id not in known)
    while batch := list(islice(missing, _BATCH)):
        control.add_seeds(
            SeedInput(seed.id, store.get_sample(seed.sample), seed.label, seed.file_sha256)
            for seed in batch
        )
    control.complete_seeds([], [])


def _unheard(text: str) -> None:
    del text
