"""The page of a campaign on audio: what its script is given, what it lets the browser play, and where sounds are."""

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import soundfile
from page_stores import HOSTILE_CLIP, KEYWORDS, RATE, audio_campaign

from edgeflare import write_html_report
from edgeflare.types import Status

Read = Callable[[Path], Any]


def content(address: str, folder: Path, media_type: str) -> bytes:
    """Return the content of a picture or sound of the page."""
    if not address.startswith("data:"):
        return (folder / address).read_bytes()
    head, _, data = address.partition(",")
    assert head == f"data:{media_type};base64"
    return base64.b64decode(data, validate=True)


@pytest.mark.parametrize("embed_mb", [10, 0])
def test_every_card_has_its_sounds_and_spectrograms(
    tmp_path: Path, read: Read, embed_mb: float
) -> None:
    folder, found = audio_campaign(tmp_path / "keywords", "keywords", 4)
    path, beside = tmp_path / "report.html", tmp_path / "report-pictures"
    written = write_html_report(folder, path, class_names=KEYWORDS, embed_mb=embed_mb)
    page = read(path)
    addresses = page.data["pictures"]
    assert written.embedded + written.beside == len(addresses) == 4 * 5 + 2
    assert (written.beside == 0) == (embed_mb > 0)
    assert page.data["rate"] == RATE
    for one, row in zip(found, page.rows, strict=True):
        names = ["trigger"] if one.status is Status.SEED_DEVIATES else ["seed", "trigger"]
        assert (row["seed_sound"] is None) == (row["seed_picture"] is None) == (len(names) == 1)
        for name in names:
            data = content(addresses[row[f"{name}_sound"]], tmp_path, "audio/wav")
            heard, rate = soundfile.read(io.BytesIO(data), dtype="float32")
            assert rate == RATE
            np.testing.assert_allclose(heard, getattr(one, name), atol=1.01 / 32768)
        for name in [*names, *(["difference"] if len(names) == 2 else [])]:
            data = content(addresses[row[f"{name}_picture"]], tmp_path, "image/png")
            assert cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) is not None
        assert row["sound_seconds"] == max(one.seed.size, one.trigger.size) / RATE
        assert (row["transcripts"], len(row["scores"])) == (None, len(KEYWORDS))
    if written.beside:  # a later report removes them
        assert {one.suffix for one in beside.iterdir()} == {".png", ".wav"}
        write_html_report(folder, path)
    assert not beside.exists()


def test_the_page_may_play_its_sounds_and_nothing_else_and_names_that_are_markup_stay_text(
    tmp_path: Path, read: Read
) -> None:
    folder, _ = audio_campaign(tmp_path / "speech", "speech", 1)
    write_html_report(folder, tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    (policy,) = page.having("meta", **{"http-equiv": "Content-Security-Policy"})
    parts = {part.split()[0]: part.split()[1:] for part in policy["content"].split(";")}
    assert parts["media-src"] == ["'self'", "data:", "file:"]
    assert parts["default-src"] == ["'none'"]
    assert page.rows[0]["seed"] == HOSTILE_CLIP
    assert not page.having("img")
    assert not any(name.startswith("on") for _, found in page.elements for name in found)
