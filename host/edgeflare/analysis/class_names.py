"""The names of the classes, for reports that people read."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from edgeflare.analysis.opening import opened
from edgeflare.errors import UsageError
from edgeflare.seeds.labels import load_label_mapping
from edgeflare.store import Store


def load_class_names(path: Path, campaign: Store | Path) -> tuple[str, ...]:
    """Read the names of a campaign's classes, in the order of their numbers.

    The file is text with a name a line, a JSON list of names, or a mapping of names to class numbers as the
    seeds have it (`.json` or `.toml`); of several names for one class the first counts.

    Raises UsageError for a file that can't be read, says something else, or lacks a name for a class of the
    campaign's models; StoreError where the campaign's folder can't be used.
    """
    mapping = load_label_mapping(path)
    names: dict[int, str] = {}
    for name, number in mapping.items():
        names.setdefault(number, name)
    with opened(campaign) as store:
        needed = max(class_count(store), max(names) + 1)
    missing = next((number for number in range(needed) if number not in names), None)
    if missing is not None:
        raise UsageError(
            f"{path} has no name for class {missing}: it names {len(names)} of {needed} classes; add the "
            "others."
        )
    return tuple(names[number] for number in range(needed))


def known_class_names(
    store: Store, class_names: Sequence[str] | None = None
) -> tuple[str, ...] | None:
    """Return these names, or by default those of the campaign's own label mapping where that is still there.

    Raises UsageError where there are fewer names than classes.
    """
    if class_names is not None:
        needed = class_count(store)
        if len(class_names) < needed:
            raise UsageError(
                f"There are {len(class_names)} class names for {needed} classes; give one for each."
            )
        return tuple(class_names)
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


def class_count(store: Store) -> int:
    """Return how many classes the campaign's models tell apart; 0 where no answer is known."""
    for seed in islice(store.seeds(), 256):
        if seed.outputs and seed.outputs.original is not None:
            return int(seed.outputs.original.size)
    return 0
