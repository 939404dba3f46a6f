"""What is said of a campaign: of what has changed since it began, of its control, and of a self-test."""

from pathlib import Path

OTHER_ANSWERS = (
    "the original answers otherwise to fixed inputs (another kind of processor, or other "
    "settings of its runtime, change the last bits)"
)
OTHER_ANSWERS_THERE = "its original answers otherwise to fixed inputs"
ANOTHER_DEVICE = "{} is not what it was: {}"
FORCED = "resumed with --force although {}"
SEEDS_GONE = "the seeds at {} are gone"
SEED_FILE_CHANGED = "the seed file {} has changed or is gone"


def gone(what: str, path: Path) -> str:
    """Return that a file is not there any more."""
    return f"{what} {path} is gone"


def changed(what: str, path: object) -> str:
    """Return that a file has other content."""
    return f"{what} {path} has changed"


def was(what: str, before: object, now: object) -> str:
    """Return both values of what has changed."""
    return f"{what} was {before}, is {now}"


def differs(what: str, there: object, here: object) -> str:
    """Return both values of what differs between two hosts."""
    return f"{what} is {there}, not {here}"


CANT_RUN = "the control can't be run: {}"
UNFINISHED = "the search is finished and kept, its control is not"

ITSELF = "the original against itself"
FLOAT_COPY = "the original against its float copy"
INT8_VERSION = "the original against its int8 version"
NOTHING_TO_SEE = "nothing was found ({}), where something is to be found: please report it"
NO_SEARCH = (
    "no search was possible ({}): its model can't answer, or no search asked it; please report it"
)


def rounding_passes(pair: str, alarms: int) -> str:
    """Return that two models that differ by rounding alone had deviations."""
    return (
        f"{alarms} false alarms ({pair}): on this machine rounding alone passes "
        "for a deviation; raise --margin-floor in your campaigns, and please report it"
    )


def survey_alarms(alarms: int, inputs: int, copy: str | None) -> str:
    """Return what false alarms of the control's survey mean; `copy`: the file compared with."""
    return (
        f"the control's survey raised {alarms} false alarms on "
        f"{inputs} inputs far from the seeds: {_cause(copy)} makes the original decide differently there, so that "
        "confident deviations of this campaign may mean no more"
    )


def alarms(
    of_searches: tuple[int, int],
    limit: tuple[str, float],
    copy: str | None,
    above: float | None,
) -> str:
    """Return what false alarms mean, and with which limit to search anew.

    `of_searches`: their number, and that of the searches; `limit`: the setting that decides what
    deviates, and its value; `above`: the largest margin of a false alarm, where margins decide.
    """
    count, searches = of_searches
    setting, value = limit
    text = (
        f"the control raised {count} false alarms in {searches} searches that "
        f"asked the device: {_cause(copy)} makes the original decide differently there at the "
        f"{setting.replace('_', ' ')} of {value:g}, so that triggers of this campaign may mean no more"
    )
    if setting != "margin_floor":
        return f"{text}; search anew with a larger --{setting}"
    if above is None or above >= 1:
        return text
    return (
        f"{text}; search anew with a --margin-floor well above {above:g}, the largest margin of a "
        "false alarm (a search stops soon above the floor, so one just above it may bring "
        "others)"
    )


def _cause(copy: str | None) -> str:
    if copy is None:
        return "the same file, computed by other kernels,"
    return f"other arithmetic, or that {copy} is no equal copy of it,"
