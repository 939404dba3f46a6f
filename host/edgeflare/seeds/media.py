"""Images and audio, and how their files are named."""

from typing import NamedTuple


class Medium(NamedTuple):
    """The names of a medium and of its files in messages, and the files' suffixes in lower case.

    `hint` ends the error where a model takes this medium and only files of the other are there.
    """

    called: str
    name: str
    several: str
    suffixes: tuple[str, ...]
    hint: str = ""

    def has(self, name: str) -> bool:
        """Return whether a file of this name is one of the medium."""
        return name.lower().endswith(self.suffixes)

    def counted(self, count: int) -> str:
        """Return "1 image", "2 images" and so on."""
        return f"1 {self.name}" if count == 1 else f"{count} {self.several}"


IMAGES = Medium(
    "images",
    "image",
    "images",
    (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"),
    " (of a model of audio state the front end, for example --input front_end=mlperf-tiny-kws)",
)
AUDIO = Medium(
    "audio",
    "audio file",
    "audio files",
    (".wav", ".flac", ".ogg", ".oga", ".opus", ".aif", ".aiff", ".aifc", ".mp3"),
)


def other_than(medium: Medium) -> Medium:
    """Return the other of the two media."""
    return AUDIO if medium is IMAGES else IMAGES
