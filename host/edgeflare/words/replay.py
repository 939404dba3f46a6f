"""What is said of the source of a replay."""

_MAY_BE = "what is fixed or new may be so by that"


def unfinished(source: str) -> str:
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
