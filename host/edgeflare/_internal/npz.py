"""Arrays of numbers in an `.npz` file that a user states."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UsageError


def read_npz(path: Path, what: str, keywords: str, most_bytes: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of an `.npz` file by name.

    In messages `what` is in it, and `keywords` are those by which numpy.savez writes one. It may
    have `most_bytes`, packed and unpacked together. Raises UsageError for a file that can't be
    read, is too large, is damaged or has pickled objects.
    """
    advice = f"write it with numpy.savez(FILE, {keywords})"
    try:
        if not path.is_file():
            raise UsageError(f"there is no file {path} with the {what}; {advice}")
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise UsageError(f"the {what} {path} can't be read: {error.strerror}") from error
    arrays = {}
    size = len(content)
    try:
        if size <= most_bytes:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                size += sum(one.file_size for one in archive.infolist())
        if size <= most_bytes:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                arrays = {name: np.asarray(stored[name]) for name in stored.files}
    except zipfile.BadZipFile as error:
        raise UsageError(f"{path} is no .npz file, or is damaged: {advice}") from error
    except Exception as error:  # zipfile, its decompressors and numpy raise nearly anything
        raise UsageError(
            f"{path} holds something else than plain arrays of numbers (pickled objects aren't "
            f"read): {advice}"
        ) from error
    if size > most_bytes:
        raise UsageError(f"{path} holds more than {most_bytes >> 20} MiB of {what}")
    return arrays
