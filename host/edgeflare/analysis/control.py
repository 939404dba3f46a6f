"""Figures of a campaign's control: how often the search raises a false alarm."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from edgeflare.store import Store
from edgeflare.store.database import DATABASE_NAME

ControlState: TypeAlias = Literal["not-begun", "begun", "finished", "refused", "gone"]


@dataclass(frozen=True)
class ControlFigures:
    """Results of a campaign's control so far; see `edgeflare.campaign.control`.

    `state`: "refused" where it can't be run, `refusal` saying why, "gone" where it was finished and
    its folder is not there any more. Of `searches` that asked the device `false_alarms` ended with
    a trigger, so that `rate` of them did, None while there are none; `unasked` ended without asking
    it, and `failed` because the model can't answer. `upper_bound` is above the true rate in 95 % of
    cases (one-sided, Clopper and Pearson 1934). `unfinished` searches are to come. `model` is the
    file that the original was compared with, its own (`own_file`) or a copy's, `runtime` what was
    in effect there. `margin_floor` is the campaign's; `largest_margin` the smallest one that would
    have let no false alarm count, exclusive.
    """

    model: str
    own_file: bool
    runtime: dict[str, Any]
    searches: int
    unasked: int
    false_alarms: int
    failed: int
    unfinished: int
    rate: float | None
    upper_bound: float | None
    margin_floor: float
    largest_margin: float | None
    state: ControlState
    refusal: str | None

    @property
    def safe_margin(self) -> float | None:
        """The largest margin of a false alarm, rounded up to two digits."""
        from edgeflare.statistics import rounded_up

        return None if self.largest_margin is None else rounded_up(self.largest_margin)


def control_figures(store: Store) -> ControlFigures | None:
    """Return the figures of a campaign's control; None where none is wanted."""
    config = store.campaign
    if not config.get("control"):
        return None
    from edgeflare.campaign.control import REFUSED, control_folder, count_alarms
    from edgeflare.campaign.status import expected_outcomes
    from edgeflare.statistics import upper_bound

    folder = control_folder(store.folder)
    own = store.setting("original", "path")
    path = config.get("control_model") or own
    runtime: dict[str, Any] = {}
    searches = unasked = alarms = finished = 0
    total = store.seed_count()
    margin = None
    exists = bool(store.fact("control_begun")) and (folder / DATABASE_NAME).is_file()
    refusal = store.fact(REFUSED)
    ended = bool(store.fact("control_finished"))
    state: ControlState = "begun" if exists else "not-begun"
    if ended:
        state = "refused" if refusal else "finished" if exists else "gone"
    if exists:
        with Store.open(folder) as control:
            searches, unasked, alarms, margin = count_alarms(control)
            finished = control.tally().done
            total = max(total, expected_outcomes(control))
            runtime = dict(control.models.get("deployed", {}).get("runtime", {}))
    return ControlFigures(
        model=Path(path).name,
        own_file=path == own,
        runtime=runtime,
        searches=searches,
        unasked=unasked,
        false_alarms=alarms,
        failed=finished - searches - unasked,
        unfinished=0 if ended else max(0, total - finished),
        rate=alarms / searches if searches else None,
        upper_bound=upper_bound(alarms, searches) if searches else None,
        margin_floor=store.setting("search", "margin_floor"),
        largest_margin=margin,
        state=state,
        refusal=refusal,
    )
