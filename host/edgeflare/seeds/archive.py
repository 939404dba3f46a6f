"""Images in an `.npz` archive."""

import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import SeedError
from edgeflare.seeds.decode import Decoded, over_black
from edgeflare.types import Sample


class ArchivedImage(NamedTuple):
    """One image of an archive, uint8 [height, width, 1, 3 or 4]."""

    id: str
    pixels: Sample
    label: int | None

    def decode(self) -> Decoded:
        """Return the image as RGB or grey; transparent pixels are laid over black."""
        if self.pixels.shape[2] != 4:
            return Decoded(np.ascontiguousarray(self.pixels), transparent=False)
        alpha = self.pixels[:, :, 3:]
        return Decoded(over_black(self.pixels[:, :, :3], alpha), bool((alpha < 255).any()))


def archived_images(path: Path) -> list[ArchivedImage]:
    """Read `images`, uint8 [N, H, W] or [N, H, W, C], and `labels`, integers [N], where there are any.

    Raises SeedError where the file or one of the arrays is not that.
    """
    arrays = _read(path)
    images, labels = arrays.get("images"), arrays.get("labels")
    if images is None:
        raise SeedError(f"The archive {path} has no array named 'images'.")
    if images.dtype != np.uint8:
        raise SeedError(
            f"'images' in {path} is {images.dtype}; it must be uint8, the pixels as a camera or "
            "file gives them, 0 to 255, before any scaling."
        )
    if images.ndim == 3:
        images = images[:, :, :, None]
    if images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise SeedError(
            f"'images' in {path} has the shape {list(arrays['images'].shape)}; it must be [N, H, W] "
            "or [N, H, W, C] with 1, 3 or 4 channels at the end."
        )
    if 0 in images.shape:
        raise SeedError(f"'images' in {path} is empty: its shape is {list(images.shape)}.")
    known = [None] * len(images) if labels is None else _checked(labels, len(images), path)
    return [
        ArchivedImage(f"{path.name}:{index}", image, label)
        for index, (image, label) in enumerate(zip(images, known, strict=True))
    ]


def _read(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise SeedError(f"{path} is a single array, not an .npz archive; use numpy.savez.")
            return {name: archive[name] for name in ("images", "labels") if name in archive}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise SeedError(f"The archive {path} can't be read: {error}.") from error


def _checked(labels: NDArray[Any], count: int, path: Path) -> list[int]:
    if not np.issubdtype(labels.dtype, np.integer) or labels.shape != (count,):
        raise SeedError(
            f"'labels' in {path} is {labels.dtype} {list(labels.shape)}; "
            f"it must be integers [{count}], one class index an image."
        )
    if (labels < 0).any():
        raise SeedError(f"'labels' in {path} has negative entries; class indices begin at 0.")
    return [int(label) for label in labels]
