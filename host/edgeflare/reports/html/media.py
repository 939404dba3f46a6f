"""The pictures and sounds of a page, embedded or as files in a folder next to it."""

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import cv2
import numpy as np

from edgeflare._internal.files import write_whole
from edgeflare.errors import StoreError
from edgeflare.reports.media import (
    Palette,
    Shades,
    change_colours,
    difference,
    indexed_png,
    is_wide,
    level_colours,
    pcm_wav,
    png,
    reduced,
    spectrograms,
)
from edgeflare.store.samples import SampleReader
from edgeflare.types import Sample

_EXACT_SIDE = 96
"""Pictures up to this side length, in pixels, are shown pixel by pixel."""

_THUMBNAIL_SIDE = 224
"""The longer side, in pixels, that larger ones are reduced to."""
_WIDE_SIDE = 448
"""The same of wide images, which are shown across a card's whole width."""
BOXED_SIDE = 416
"""The same of pictures with boxes over them."""
_QUALITY = 82


class Media(NamedTuple):
    """A picture's or sound's file: its content, its media type and its ending."""

    data: bytes
    media_type: str
    ending: str


def picture(image: Sample, side: int = _THUMBNAIL_SIDE) -> Media:
    """Return uint8 [height, width, 1 or 3], grey or RGB, as a file.

    Up to 96 pixels on the longer side it is a PNG with exactly its pixels, above that a JPEG of at
    most `side`, of wide images at most 448. Raises StoreError for a shape that is no image's.
    """
    if max(image.shape[:2]) <= _EXACT_SIDE:
        return Media(png(image), "image/png", "png")
    side = max(side, _WIDE_SIDE) if is_wide(image) else side
    small = reduced(image, side)[:, :, ::-1]  # OpenCV writes BGR
    done, data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    if not done:
        raise StoreError(f"an image of shape {list(image.shape)} can't be written as JPEG")
    return Media(data.tobytes(), "image/jpeg", "jpg")


_MISSING, _GREY = 64, 192
"""Pixels and level of the picture of an input that can't be read: a black cross."""
_NAME = re.compile(r"[0-9a-f]{24}\.(png|jpg|wav)")
_OVERHEAD = 4  # quotes and a comma in JSON, and some


class Shown(NamedTuple):
    """A finding's pictures and sounds, by their numbers in `MediaBundle.addresses`; None where
    there is none.

    A change of one level is shown as `amplification` levels in the difference. Pictures of audio
    are spectrograms of `sound_seconds` from left to right. `maps` are both models' maps and their
    difference.
    """

    seed_picture: int | None
    trigger_picture: int
    difference_picture: int | None
    amplification: float | None
    seed_sound: int | None = None
    trigger_sound: int | None = None
    sound_seconds: float | None = None
    maps: list[int] | None = None


class MediaBundle:
    """The pictures and sounds of findings, added the most important first; `reader` reads
    samples. `rate` is that of audio in Hz, None for images; `side` the most pixels of a
    thumbnail.

    `addresses` has a ``data:`` URL for each picture in the page, as long as all of them stay within
    `budget` bytes, and the relative address of its file for each other. Equal pictures are stored
    once. `wide`: an image added is a wide one, see `is_wide`.
    """

    def __init__(
        self,
        reader: SampleReader,
        folder: Path,
        budget: float,
        *,
        rate: int | None = None,
        side: int = _THUMBNAIL_SIDE,
    ) -> None:
        self.addresses: list[str] = []
        self.embedded = 0
        self.beside = 0
        self.wide = False
        self._reader = reader
        self._folder = folder
        self._left = budget
        self.rate = rate
        self._side = side
        self._numbers: dict[str, int] = {}
        self._files: set[str] = set()

    def add(self, seed: str, trigger: str | None, maps: Sequence[Media] = ()) -> Shown | None:
        """Add the pictures and sounds of a finding, by the digests of its samples; no trigger: the
        seed is one. `maps` are its further pictures.

        Returns None, and adds nothing, where a sample is missing or damaged. Raises OSError where a
        file can't be written.
        """
        pair = self._reader.pair(seed, trigger or seed)
        if pair is None:
            return None
        return self._with_maps(self._add(seed, trigger, pair), trigger or seed, maps)

    def add_missing(self, maps: Sequence[Media]) -> Shown:
        """Add a picture (or silence) in place of an input that can't be read."""
        return self._with_maps(self._add("", None, None), "", maps)

    def _with_maps(self, shown: Shown, name: str, maps: Sequence[Media]) -> Shown:
        if not maps:
            return shown
        number = len(self.addresses)  # several may have no name
        named = [(f"{name or number}-map-{place}", one) for place, one in enumerate(maps)]
        return shown._replace(maps=self._put(named))

    def _add(self, seed: str, trigger: str | None, pair: tuple[Sample, Sample] | None) -> Shown:
        if self.rate is not None:
            return self._add_sounds(seed, trigger or seed, pair or _silence(self.rate), self.rate)
        first, second = pair or _crosses()
        self.wide |= is_wide(first)
        if trigger is None or trigger == seed:
            number = self._put([(seed, picture(first, self._side))])[0]
            return Shown(None, number, None, None)
        new = [(seed, picture(first, self._side)), (trigger, picture(second, self._side))]
        if first.shape != second.shape:
            one, other = self._put(new)
            return Shown(one, other, None, None)
        change, amplification = difference(first, second)
        both = (*new, (f"{seed}-{trigger}", picture(change, self._side)))
        one, other, third = self._put(both)
        return Shown(one, other, third, amplification)

    def _add_sounds(self, seed: str, trigger: str, pair: tuple[Sample, Sample], rate: int) -> Shown:
        first, second = pair
        before, after, change = spectrograms(first, second, rate)
        seconds = max(first.size, second.size) / rate
        levels, changes = level_colours(), change_colours()
        new = [
            (f"{trigger}-heard", Media(pcm_wav(second, rate), "audio/wav", "wav")),
            (f"{trigger}-of-{seed}", _spectrogram(after, levels)),
        ]
        if seed == trigger:
            sound, shown = self._put(new)
            return Shown(None, shown, None, None, None, sound, seconds)
        new += [
            (f"{seed}-heard", Media(pcm_wav(first, rate), "audio/wav", "wav")),
            (f"{seed}-before-{trigger}", _spectrogram(before, levels)),
            (f"{seed}-{trigger}", _spectrogram(change, changes)),
        ]
        heard, shown, seed_heard, seed_shown, changed = self._put(new)
        return Shown(seed_shown, shown, changed, None, seed_heard, heard, seconds)

    def remove_stale(self) -> None:
        """Remove the files of an earlier report that this one has no use for; other files stay."""
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if _NAME.fullmatch(path.name) and path.name not in self._files:
                path.unlink()
        if not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _put(self, pictures: Sequence[tuple[str, Media]]) -> list[int]:
        """Return the numbers of a finding's media, embedded together or not at all."""
        new = {key: one for key, one in pictures if key not in self._numbers}
        size = sum(_embedded_size(one) for one in new.values())
        fits = size <= self._left
        self._left = self._left - size if fits else 0.0
        for key, one in new.items():
            self._numbers[key] = len(self.addresses)
            self.addresses.append(self._embed(one) if fits else self._write(one))
        return [self._numbers[key] for key, _ in pictures]

    def _embed(self, one: Media) -> str:
        self.embedded += 1
        return f"data:{one.media_type};base64,{base64.b64encode(one.data).decode()}"

    def _write(self, one: Media) -> str:
        name = f"{hashlib.sha256(one.data).hexdigest()[:24]}.{one.ending}"
        path = self._folder / name
        if name not in self._files:
            self._files.add(name)
            self.beside += 1
            if not (path.is_file() and path.stat().st_size == len(one.data)):
                self._folder.mkdir(parents=True, exist_ok=True)
                write_whole(path, one.data)
        return quote(f"{self._folder.name}/{name}")


def _spectrogram(shades: Shades, palette: Palette) -> Media:
    return Media(indexed_png(shades, palette), "image/png", "png")


def _embedded_size(one: Media) -> int:
    return 4 * -(-len(one.data) // 3) + len(f"data:{one.media_type};base64,") + _OVERHEAD


def _crosses() -> tuple[Sample, Sample]:
    """Return pictures in place of a seed and its trigger that can't be read."""
    cross = np.full((_MISSING, _MISSING, 1), _GREY, np.uint8)
    cross[np.eye(_MISSING, dtype=bool) | np.eye(_MISSING, dtype=bool)[::-1]] = 0
    return cross, cross


def _silence(rate: int) -> tuple[Sample, Sample]:
    """Return sounds in their place."""
    silence = np.zeros(rate // 10 + 1, np.float32)
    return silence, silence
