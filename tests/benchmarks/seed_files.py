"""Makes the two seed files that the suites `boundary` and `severity` need and the shared data has not.

python tests/benchmarks/seed_files.py --data FOLDER --out FOLDER [--foolbox FOLDER]

`images/photographs_30.npz`: `images` uint8 [30, 224, 224, 3], RGB: a crop at a seeded place of each of the ten shared
photographs and of the 20 of ImageNet that foolbox ships, 200/224 of the shorter side, resized to 224 pixels; `names`.
`audio/kws_mfcc_uint8.npz`: `images` uint8 [1000, 49, 10, 1], the shared MFCC features of spoken words moved up by 128 so
that they are searched as images; `labels`. The same input gives the same files. Then:
``edgeflare bench run boundary --data FOLDER --data OUT``.
"""

import argparse
import importlib.util
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE = 224
SHARE = 200 / 224
SEED = 0
FOOLBOX_PHOTOGRAPHS = 20


def crop(image: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return a square of the image at a place drawn, as uint8 [224, 224, 3]."""
    height, width = image.shape[:2]
    side = round(SHARE * min(height, width))
    top, left = rng.integers(height - side + 1), rng.integers(width - side + 1)
    square = np.ascontiguousarray(image[top : top + side, left : left + side])
    how = cv2.INTER_AREA if side > SIDE else cv2.INTER_CUBIC
    return cv2.resize(square, (SIDE, SIDE), interpolation=how).astype(np.uint8)


def foolbox_photographs(stated: Path | None) -> list[Path]:
    """Return the 20 files of an installed foolbox or of the folder stated. Ends the program without them."""
    spec = importlib.util.find_spec("foolbox") if stated is None else None
    package = Path(spec.origin).parent if spec and spec.origin else stated
    found: list[Path] = []
    if package is not None:
        found = sorted(package.glob("imagenet_*.jpg")) or sorted(package.rglob("imagenet_*.jpg"))
    if len(found) != FOOLBOX_PHOTOGRAPHS:
        raise SystemExit(
            f"there are not the {FOOLBOX_PHOTOGRAPHS} photographs of foolbox: install it with "
            "`pip install --no-deps foolbox==3.3.4`, or unpack its wheel and name the folder with --foolbox"
        )
    return found


def photographs(data: Path, stated: Path | None) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of photographs_30.npz."""
    rng = np.random.default_rng(SEED)
    with np.load(data / "images" / "photos_coral_10.npz") as archive:
        images = list(archive["images"])
        names = [f"coral/{name}" for name in archive["names"]]
    for path in foolbox_photographs(stated):
        pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
        if pixels is None:
            raise SystemExit(f"{path} can't be read; install foolbox again")
        images.append(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB))
        names.append(f"foolbox/{path.name}")
    return {"images": np.stack([crop(image, rng) for image in images]), "names": np.array(names)}


def spoken_words(data: Path) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of kws_mfcc_uint8.npz."""
    with np.load(data / "audio" / "speech_commands_mfcc_1000.npz") as archive:
        features, labels = archive["mfcc_int8"], archive["labels"]
    return {"images": (features.astype(np.int16) + 128).astype(np.uint8), "labels": labels}


def write(path: Path, arrays: dict[str, NDArray[np.generic]]) -> None:
    """Write an archive and say so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    print(f"{path}: {', '.join(f'{name} {list(one.shape)}' for name, one in arrays.items())}")


def main() -> None:
    """Make both files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the shared data")
    parser.add_argument("--out", type=Path, required=True, help="where to put the files")
    parser.add_argument("--foolbox", type=Path, help="a folder with foolbox's photographs")
    arguments = parser.parse_args()
    photos = photographs(arguments.data, arguments.foolbox)
    write(arguments.out / "images" / "photographs_30.npz", photos)
    write(arguments.out / "audio" / "kws_mfcc_uint8.npz", spoken_words(arguments.data))


if __name__ == "__main__":
    main()
