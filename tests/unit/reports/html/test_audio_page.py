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
from report_stores import HOSTILE_CLIP, KEYWORDS, LINES, RATE, audio_campaign, transcript

from edgeflare import report_text, write_html_report
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, Status

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
    path = tmp_path / "report.html"
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
        assert row["transcripts"] is None
        assert len(row["scores"]) == len(KEYWORDS)


def test_the_page_may_play_its_sounds_and_nothing_else(tmp_path: Path, read: Read) -> None:
    folder, _ = audio_campaign(tmp_path / "keywords", "keywords", 1)
    write_html_report(folder, tmp_path / "report.html")
    (policy,) = read(tmp_path / "report.html").having(
        "meta", **{"http-equiv": "Content-Security-Policy"}
    )
    parts = {part.split()[0]: part.split()[1:] for part in policy["content"].split(";")}
    assert parts["media-src"] == ["'self'", "data:", "file:"]
    assert parts["default-src"] == ["'none'"]


def test_sounds_of_an_earlier_report_are_removed(tmp_path: Path) -> None:
    folder, _ = audio_campaign(tmp_path / "keywords", "keywords", 1)
    path = tmp_path / "report.html"
    write_html_report(folder, path, embed_mb=0)
    beside = tmp_path / "report-pictures"
    assert {one.suffix for one in beside.iterdir()} == {".png", ".wav"}
    write_html_report(folder, path)
    assert not beside.exists()


def test_recognisers_have_words_in_place_of_classes(tmp_path: Path, read: Read) -> None:
    folder, _ = audio_campaign(tmp_path / "speech", "speech", 6)
    write_html_report(folder, tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    for number, row in enumerate(page.rows):
        original, deployed = LINES[number % len(LINES)]
        heard = row["transcripts"]
        assert "".join(text for text, _ in heard["original"]) == original
        assert "".join(text for text, _ in heard["deployed"]) == deployed
        assert row["original"] is row["deployed"] is None
        assert row["scores"] == []
        itself = row["seed_picture"] is None
        assert heard["seed"] == (None if itself else [original, original])
    first = page.rows[0]["transcripts"]
    assert first["changes"] == [["no", "go"]]
    assert first["deployed"] == [["He has ", 0], ["go", 1], [" money.", 0]]
    choices = {one["value"] for one in page.having("option")}
    assert {"no→go", "don't→", "→men"} <= choices
    assert "0-1" not in choices
    assert page.having("input", name="text")
    links = [one["data-pair"] for one in page.having("a") if "data-pair" in one]
    assert links[0] == "no→go"
    assert not page.having("table", **{"class": "matrix"})
    assert "original returns" in page.text
    assert "Median signal-to-noise ratio" in page.text


def test_words_and_names_that_are_markup_stay_text(tmp_path: Path, read: Read) -> None:
    folder, _ = audio_campaign(tmp_path / "speech", "speech", 1)
    write_html_report(folder, tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert page.rows[0]["seed"] == HOSTILE_CLIP
    assert not page.having("img")
    assert not any(name.startswith("on") for _, found in page.elements for name in found)


def test_a_replay_of_transcripts_reports_what_was_recognised_then_and_now(
    tmp_path: Path, read: Read
) -> None:
    folder, found = audio_campaign(tmp_path / "speech", "speech", 2)
    (original, deployed), source = LINES[0], found[0]
    about = {
        "kind": "trigger",
        "deviated": True,
        "seed_id": source.name,
        "replica": "",
        "label": None,
        "original_label": None,
        "deployed_label": None,
        "l2": 2.5,
        "looks": {},
        "original_text": original,
        "deployed_text": deployed,
    }
    with Store.open(folder) as campaign, Store.create(tmp_path / "replay", {}) as store:
        where = {"kind": "campaign", "folder": str(folder), "campaign": campaign.id, "models": {}}
        store.set_sample_rate(RATE)
        store.set_models(*(campaign.models[name] for name in ("original", "deployed")))
        store.add_seeds(SeedInput(f"trigger:{name}", source.trigger) for name in ("a", "b"))
        inputs = [{**about, "id": f"trigger:{name}"} for name in ("a", "b")]
        store.state.replay = {"source": where, "inputs": inputs}
        now = transcript(original), transcript("He has so money.")
        for name, answers, status, decision in (
            ("a", now, Status.SEED_DEVIATES, Decision.DEVIATION),
            ("b", (now[0], now[0]), Status.GAVE_UP, Decision.AGREE),
        ):
            store.add_seed_answers([SeedAnswer(f"trigger:{name}", *answers, decision)])
            store.add_outcome(OutcomeRecord(f"trigger:{name}", status, 0, device_name="pi"))
        write_html_report(store, tmp_path / "report.html")
        text = report_text(store, "markdown")
    still, fixed = read(tmp_path / "report.html").rows
    assert f'"{original}" -> "{deployed}"' in still["replayed"]["words"]
    assert fixed["replayed"]["state"] == "fixed"
    assert still["transcripts"]["changes"] == [["no", "so"]]
    assert still["transcripts"]["seed"] is None
    assert still["seed_sound"] is not None
    assert 'money." -\\> "He' in text
