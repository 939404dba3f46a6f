"""What is no longer as it was when a campaign began, or isn't as it is on another host."""

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
