"""Accepting a red night as the new baseline, after an intended change of the model."""

from collections.abc import Sequence

from edgeflare.errors import UsageError
from edgeflare.nightly.config import NightlyConfig
from edgeflare.nightly.history import LOG_NAME, Baseline, History, NightLog
from edgeflare.nightly.page import write_page
from edgeflare.nightly.run import Clock, chosen_runs, now, update_corpus
from edgeflare.store import CampaignLock


def accept_night(
    config: NightlyConfig,
    *,
    models: Sequence[str] = (),
    devices: Sequence[str] = (),
    clock: Clock = now,
) -> tuple[str, ...]:
    """Accept the last run of each model on each device, where it isn't green, as the baseline of later nights.

    `models` and `devices` name those that are meant, all where they are empty. Returns a line for each
    that was accepted. Raises UsageError where there is none, or a name is unknown; StoreError where the
    history can't be used or a night runs in it.
    """
    chosen = chosen_runs(config, models, devices)
    history = History(config.history)
    if not history.folder.is_dir():
        raise UsageError(f"there is no history {history.folder} yet; run a night first")
    with CampaignLock(history.folder):
        red = [
            one
            for model, device in chosen
            if (one := _last_searched(history, model.name, device)) and not one.run.is_baseline
        ]
        if not red:
            raise UsageError(
                "nothing to accept: the last search of each model on each device is the baseline already"
            )
        told = tuple(_accept(history, one, clock) for one in red)
        write_page(history)
    return told


def _last_searched(history: History, model: str, device: str) -> Baseline | None:
    """Return the newest night with a finished search of a model on a device."""
    for night in reversed(history.nights()):
        run = night.run(model, device)
        if run is not None and run.search is not None and night.campaign(run).is_dir():
            return Baseline(night, run)
    return None


def _accept(history: History, one: Baseline, clock: Clock) -> str:
    night = next(night for night in history.nights() if night.stamp == one.night.stamp)
    accepted = one.run.model_copy(update={"accepted": True})
    with NightLog(night.folder / LOG_NAME, clock) as log:
        update_corpus(history, night, accepted, log.line)
        log.line(f"{accepted.name}: accepted as the new baseline")
    runs = tuple(accepted if run.name == accepted.name else run for run in night.runs)
    history.save(night.model_copy(update={"runs": runs}))
    return f"{accepted.name}: the night {night.stamp} is the new baseline"
