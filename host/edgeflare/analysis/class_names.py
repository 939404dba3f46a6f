"""The names of the classes, for reports that people read."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from edgeflare.errors import UsageError
from edgeflare.store import Store, open_store


def load_class_names(path: Path, campaign: Store | Path) -> tuple[str, ...]:
    """Read the names of a campaign's classes, in the order of their numbers.

    Raises what `edgeflare.seeds.class_names.read_class_names` does, which says what the file is;
    UsageError where it lacks a name for a class of the campaign's models; StoreError where the
    campaign's folder can't be used.
    """
    from edgeflare.seeds.class_names import read_class_names

    names = read_class_names(path)
    with open_store(campaign) as store:
        needed = max(_class_count(store), max(names) + 1)
    missing = next((number for number in range(needed) if number not in names), None)
    if missing is not None:
        raise UsageError(
            f"{path} has no name for class {missing}: it names {len(names)} of {needed} classes; "
            "add the others"
        )
    return tuple(names[number] for number in range(needed))


def known_class_names(
    store: Store, class_names: Sequence[str] | None = None
) -> tuple[str, ...] | None:
    """Return these names, by default those that the campaign has, of its models or of [detection],
    else those of its label mapping if that is still there.

    Raises UsageError where there are fewer names than classes.
    """
    if class_names is not None:
        needed = _class_count(store)
        if len(class_names) < needed:
            raise UsageError(
                f"there are {len(class_names)} class names for {needed} classes; give one for each"
            )
        return tuple(class_names)
    if (known := store.state.class_names) is not None:
        return tuple(known)
    path = (store.campaign.get("seeds") or {}).get("labels")
    if not path or not Path(path).is_file():
        return None
    try:
        return load_class_names(Path(path), store)
    except UsageError:
        return None


def class_name(names: Sequence[str] | None, number: int | None) -> str:
    """Return a class's name, its number where there are no names, a dash for None."""
    if number is None:
        return "-"
    return str(number) if names is None or number >= len(names) else names[number]


def class_namer(
    campaign: Store | Path | str, class_names: Sequence[str] | None = None
) -> Callable[[int | None], str]:
    """Return what makes a class's number its name, of the names that `known_class_names` returns."""
    with open_store(campaign) as store:
        return partial(class_name, known_class_names(store, class_names))


def _class_count(store: Store) -> int:
    """Return the number of classes; 0 of transcripts, and where no answer is known."""
    for seed in islice(store.seeds(), 256):
        if seed.outputs and seed.outputs.original is not None:
            return store.kind.class_count(seed.outputs.original)
    return 0
