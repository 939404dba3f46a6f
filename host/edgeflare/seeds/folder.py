"""Files of one medium in a folder, each with the label that its class folder gives it."""

from pathlib import Path
from typing import NamedTuple

from edgeflare.errors import SeedError
from edgeflare.seeds.files import Listing, list_files
from edgeflare.seeds.media import Medium, other_than
from edgeflare.types import Skipped


class LabelledFiles(NamedTuple):
    """A folder's files of one medium, and what the user ought to know of the others.

    `files` are (name, class index or None), POSIX paths relative to the folder in natural order.
    """

    files: list[tuple[str, int | None]]
    skipped: list[Skipped]
    notices: list[str]


def labelled_files(folder: Path, labels: dict[str, int] | None, medium: Medium) -> LabelledFiles:
    """List a folder's files of one medium, each with the class index that `labels` gives its class folder.

    Raises SeedError where there is no such file, or `labels` (folder name -> class index) fits no folder.
    """
    listing = list_files(folder, medium)
    if not listing.names and not listing.skipped:
        raise SeedError(_nothing(folder, listing, medium))
    notices = []
    if listing.others:
        what = listing.described_others()
        notices.append(f"{what} in {folder} ignored: no {medium.name} by name.")
    files = [(name, _class_of(name, labels or {})) for name in listing.names]
    unlabelled = sum(label is None for _, label in files)
    if labels is None and any("/" in name for name in listing.names):
        notices.append(
            f"The {medium.several}' folders are not used as labels: no label mapping was given."
        )
    elif labels is not None and unlabelled == len(files):
        raise SeedError(
            f"No {medium.name} of {folder} is in a folder that the label mapping names; "
            f"it names {', '.join(list(labels)[:5])}."
        )
    elif labels is not None and unlabelled:
        notices.append(
            f"{medium.counted(unlabelled)} had no label: "
            "they are in no folder that the label mapping names."
        )
    return LabelledFiles(files, listing.skipped, notices)


def not_this_medium(source: Path, medium: Medium) -> str:
    """Return the sentence for a single file that isn't one of the medium, nor an archive."""
    other = other_than(medium)
    if other.has(source.name):
        return f"{source} is an {other.name}, and the model takes {medium.called}{medium.hint}."
    return (
        f"{source} is no folder, {medium.name} or .npz archive; "
        f"{medium.several} end in {', '.join(medium.suffixes)}."
    )


def _nothing(folder: Path, listing: Listing, medium: Medium) -> str:
    if listing.misplaced:
        held = other_than(medium).counted(listing.misplaced)
        return (
            f"There is no {medium.name} in {folder}; it holds {held}, and the model takes "
            f"{medium.called}{medium.hint}."
        )
    others = f"; it holds {listing.described_others()} of other kinds" if listing.others else ""
    return (
        f"There is no {medium.name} in {folder}{others}; "
        f"{medium.several} end in {', '.join(medium.suffixes)}."
    )


def _class_of(name: str, labels: dict[str, int]) -> int | None:
    return next((labels[part] for part in name.split("/")[:-1] if part in labels), None)
