"""What is said of a campaign: of changes since it began, its control, a self-test and a replay's source."""

from pathlib import Path

from edgeflare.strategies.boundary import BoundaryOptions

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


ALL_UP = "all devices are up"
DISAGREES = (
    "{}; accept a pair that differs so with --allow-disagreement (`edgeflare analyse triage` tells "
    "more of the cause, `edgeflare explain` of each finding)"
)
WITHOUT_DEVICE = "goes on without {}: {}"
DEVICES_DIFFER = (
    "devices that differ share the seeds ({}): what is found depends on which took which"
)
OTHERS_GO_ON = "{} can't be run, the others go on: {}"
NOTHING_LEFT = "{} is finished: nothing is left to do"
SEARCH_FINISHED = "its search is finished, its control is not"
KILLED = "its process ended without a word: killed, or the machine went down"
QUERY_LIMIT = "the query limit is reached"
SEARCHES_LEFT = (
    f"{QUERY_LIMIT}: {{}} of {{}} searches are left; `edgeflare resume` with a larger one goes on"
)
SEARCHES_KEPT = "{} of {} searches are finished and kept"
STOPPED = "stopped before any search; all answers are kept"
STOPPED_IN = "stopped in the stage {}, before any search; all answers are kept"
REPLAYS_LEFT = "{} of {} replays are left"
REPLAY_FAILED = "a replay failed: {}"
EVERY_TRIGGER = "every triggering input on every device"
SEEDS_LEFT = "seeds are left that the models have not answered"
INPUTS_LEFT = "inputs are left that the models have not answered"
MOSTLY_BELOW_FLOOR = (
    "{} of {} searches found nothing, with most of their inputs below the margin floor of {:g}, "
    "which the device was not asked about; a lower --margin-floor lets them count"
)
QUERY_COST = "what a query costs"
TENSORS_OF = "tensors of {} on {}"
SEED_DEVIATES = "nothing: the seed input deviates"
NOTHING_TO_EXPLAIN = "there is nothing to explain"
NOTHING_TO_TUNE = "--tune measures nothing for {}: all have the same options"

FAR_FROM_SEEDS = "far from the seeds, on {}"
NOT_SURVEYED = "{} of {} seeds are not surveyed"
AFTER_SURVEY = "after what the survey saw"
PURSUIT_UNFINISHED = "the pursuit after the survey is not finished"
NEARLY_EVERYWHERE = "nearly everywhere ({:,} of {:,} inputs asked about)"
MAKING_INT8 = "making int8 models of {}"
INT8_MODELS = "{} int8 models on the host"
SURVEYED_OTHERWISE = (
    "the reference {} was surveyed with {} {:.15g}, this campaign with {:.15g}: only the inputs "
    "that both have count"
)
SHARES = "has {} of this campaign's {}"
LEFT_OUT = (
    "the reference {} is left out, since its survey {}; both campaigns need the same seeds, --seed "
    "and settings of the survey"
)
RESTS_ON_SHARED = (
    "the survey of the reference {} {}: the verdict rests on the inputs that both have"
)
NO_REFERENCE = "no reference {}: onnxruntime can't make it ({})"
SAME_DEPLOYED_MODEL = (
    "the reference {} has the same deployed model: the verdict tells whether this device answers "
    "as that one did, not whether the model is sound"
)

NOT_IN_REPORT = "the result isn't stored, so that the report lacks it: {}"
ENDED_AT_START = "it ended at its start"
DOES_NOT_START = "it does not start"
OTHER_ORIGINAL = "its original answers otherwise than this process' one"
UNREAD_MESSAGE = ", after a message that can't be read here: {}: {}"
WORKER_CANT = "searches run in this process, for a worker process can't: {}"
WORKER_ENDED = (
    "a worker process ended ({}); its {} searches start again, each in a process of its own"
)
ENDED_ITS_WORKER = "the search ended its worker process {} times: {}"


def tuned(chosen: BoundaryOptions, ratio: float) -> str:
    """Return which options measured times chose; `ratio`: host queries in the time of a device query."""
    about = f"{ratio:.0f}" if ratio >= 9.5 else f"{ratio:.2g}"
    three = ", three classes tied" if chosen.tied_classes == 3 else ""
    at_once = f", {chosen.candidates} candidates at once" if (chosen.candidates or 1) > 1 else ""
    names = ("effort", "tied_classes", "candidates")
    options = " ".join(f"--option {name}={getattr(chosen, name)}" for name in names)
    return (
        f"tuned by measured times: crossing {chosen.crossing}, effort {chosen.effort}{three}"
        f"{at_once} (a device query costs about {about} host queries); `--crossing "
        f"{chosen.crossing} {options}` repeats it"
    )


_MAY_BE = "what is fixed or new may be so by that"


def unfinished_source(source: str) -> str:
    """Return that the `source`, such as "the campaign /path", goes on or was interrupted."""
    return f"{source} is not finished: what it found so far is replayed"


def without_triggers(source: str) -> str:
    """Return that only seeds are sent again."""
    return f"{source} has no triggering input: only its seed inputs are compared"


def another_original(file: str, source: str) -> str:
    """Return that the original isn't the one that the source was found with."""
    return f"the original model {file} is another file than {source} was found with: {_MAY_BE}"


def changed_since(what: str) -> str:
    """Return that `what`, such as "the file of class names has changed", concerns the results."""
    return f"{what} since: {_MAY_BE}"
