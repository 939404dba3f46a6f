"""Findings as files, read back by other means."""

import errno
import json
import math
from pathlib import Path

import cv2
import numpy as np
import pytest
from stores import ended, store_of

from edgeflare.errors import DiskFullError, StoreError
from edgeflare.reports import export_campaign, write_text_report
from edgeflare.reports.html import write_html_report
from edgeflare.reports.media import difference, panel, png
from edgeflare.store import Store
from edgeflare.types import Status


def rows_of(folder):
    return [json.loads(line) for line in (folder / "triggers.jsonl").read_text().splitlines()]


def picture(folder, row, kind):
    return cv2.imread(str(folder / row["files"][kind]), cv2.IMREAD_UNCHANGED)


@pytest.fixture
def exported(finished, tmp_path):
    folder = tmp_path / "pictures"
    export_campaign(finished, folder)
    return folder


def test_every_finding_has_a_line_and_its_files(finished, tmp_path):
    seen = []
    folder = tmp_path / "deep" / "pictures"
    report = export_campaign(finished.folder, folder, progress=lambda *counts: seen.append(counts))
    rows = rows_of(folder)
    assert [row["status"] for row in rows] == ["found"] * 4 + [
        "unstable",
        "nonfinite",
        "seed-deviates",
    ]
    assert seen == [(number, 7) for number in range(1, 8)]
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    named = {name for row in rows for name in row["files"].values()}
    assert files == named | {"campaign.json", "triggers.jsonl"}
    assert report.to_json() == {
        "folder": str(folder),
        "findings": 7,
        "by_status": {"found": 4, "unstable": 1, "nonfinite": 1, "seed-deviates": 1},
        "files": len(files),
        "survey_findings": 0,
        "notices": [],
    }


def test_a_line_has_all_that_is_needed_to_see_it_again(finished, exported):
    first, _, row, *_ = rows = rows_of(exported)
    (device,) = finished.devices()
    expected = {
        "seed_id": "digits/2.png",
        "status": "found",
        "label": 2,
        "chain_seed": 2,
        "original_label": 0,
        "deployed_label": 1,
        "linf": 60,
        "seconds": 3.0,
        "confirmed": 2,
        "original_scores": [0.75, 0.25],
        "deployed_scores": [0.0, 1.0],
        "original_margin": 0.5,
        "deployed_margin": 1.0,
        "round_trips": 29,
        "queries": {"seed": 1, "search": 30, "confirmation": 2, "host_only": 3},
        "front": [{"queries": 30, "margin": 0.5, "l2": row["l2"], "linf": 60}],
        "mutations": [{"operator": "average"}],
        "original_model": "aa",
        "deployed_model": "bb",
        "replica": "",
        "device": device.digest,
        "device_name": "bench pi",
    }
    assert {name: row[name] for name in expected} == expected
    campaign = json.loads((exported / "campaign.json").read_text())
    assert campaign["devices"][row["device"]]["fingerprint"] == {"board": "pi"}
    assert campaign["environments"][row["environment"]] == {"numpy": "2"}
    assert campaign["config"] == {"seed": 4}
    assert campaign["summary"]["found"] == 4
    assert first["seed_original_scores"] == [0.75, 0.25]
    assert first["seed_deployed_scores"] == [0.5, 0.5]
    broken = next(one for one in rows if one["status"] == "nonfinite")
    values = [float(value) for value in broken["deployed_scores"]]  # valid JSON, read as floats
    assert math.isnan(values[0])
    assert values[1] == math.inf
    assert broken["trigger_sample"] == broken["seed_sample"]


def test_pictures_are_exact_and_differences_can_be_undone(finished, exported):
    seeds = {seed.id: seed for seed in finished.seeds()}
    for row in rows_of(exported):
        seed, trigger = (picture(exported, row, kind).astype(float) for kind in ("seed", "trigger"))
        stored = (seeds[row["seed_id"]].sample, row["trigger_sample"])
        for shown, digest in zip((seed, trigger), stored, strict=True):
            assert np.array_equal(shown, finished.get_sample(digest)[:, :, 0])
        change = picture(exported, row, "difference").astype(float) - 128
        assert np.allclose(change / row["amplification"], trigger - seed, atol=1.01)
        if not np.array_equal(seed, trigger):
            assert np.abs(change).max() == 127


@pytest.mark.parametrize(("seed", "trigger"), [(0, 255), (255, 0), (7, 8), (9, 9)])
def test_the_extremes_of_a_difference(seed, trigger):
    shown, amplification = difference(
        np.full((1, 1, 1), seed, np.uint8), np.full((1, 1, 1), trigger, np.uint8)
    )
    assert int(shown[0, 0, 0]) == 128 + 127 * np.sign(trigger - seed)
    assert amplification * max(1, abs(trigger - seed)) == (127 if trigger != seed else 1)


def test_a_panel_shows_the_three_side_by_side_with_square_pixels(exported):
    row = rows_of(exported)[3]
    shown = picture(exported, row, "panel")
    side = 28 * 9
    assert shown.shape == (side, 3 * side + 2 * 8)
    for number, kind in enumerate(("seed", "trigger", "difference")):
        left = number * (side + 8)
        small = shown[4:side:9, left + 4 : left + side : 9]
        assert np.array_equal(small, picture(exported, row, kind))
    large = np.zeros((300, 200, 3), np.uint8)
    assert panel(large, large).shape == (300, 408, 3)


def test_colour_pictures_are_exact_and_red_is_red():
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    image[0, 0] = (255, 0, 0)
    blue_green_red = cv2.imdecode(np.frombuffer(png(image), np.uint8), cv2.IMREAD_UNCHANGED)
    assert np.array_equal(blue_green_red[:, :, ::-1], image)


def test_exporting_again_adds_what_is_new_and_changes_nothing_else(finished, exported):
    def contents():
        return {path.name: path.read_bytes() for path in (exported / "images").iterdir()}

    before = contents()
    ended(finished, "digits/9.png", trigger=np.full((28, 28, 1), 9, np.uint8))
    export_campaign(finished, exported)
    after = contents()
    assert len(rows_of(exported)) == 8
    assert before.items() <= after.items()
    assert len(after) == len(before) + 4


def test_other_peoples_folders_are_left_alone(finished, exported, tmp_path):
    with Store.create(tmp_path / "other", {}) as other:
        for folder in (exported, finished.folder, tmp_path):
            with pytest.raises(StoreError, match="earlier export"):
                export_campaign(other, folder)
    for number, content in enumerate((b"{", b"[]", b"\xff", b'{"campaign": 3}')):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "campaign.json").write_bytes(content)
        with pytest.raises(StoreError, match="earlier export"):
            export_campaign(finished, folder)
    with pytest.raises(StoreError, match="earlier export"):
        export_campaign(finished, tmp_path / "0" / "campaign.json")
    with pytest.raises(StoreError, match="a directory"):
        export_campaign(finished, tmp_path / "0" / "campaign.json" / "below")


def test_awkward_names_make_plain_file_names(tmp_path):
    ids = ["../../etc/passwd", "a:b?*.png", "ü" * 300, "digits.npz:7", "digits.npz/7"]
    ends = [{"seed": name, "status": Status.SEED_DEVIATES} for name in ids]
    with store_of(tmp_path / "c", ends, seeds=ids) as store:
        export_campaign(store, tmp_path / "out")
    names = [row["files"]["seed"] for row in rows_of(tmp_path / "out")]
    assert len(set(names)) == len(ids)
    assert names[3] == "images/00003-digits-npz-7-seed.png"
    for name in names:
        assert name.isascii()
        assert len(Path(name).name) < 100
        assert (tmp_path / "out" / name).resolve().parent == (tmp_path / "out" / "images").resolve()


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EIO, StoreError)]
)
def test_a_failing_disk_is_one_sentence_and_leaves_the_earlier_file(
    finished, exported, monkeypatch, number, kind
):
    before = (exported / "campaign.json").read_bytes()

    def fail(self, *arguments):
        raise OSError(number, "no", str(self))

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(kind, match=r"choose another folder|export again"):
        export_campaign(finished, exported)
    assert (exported / "campaign.json").read_bytes() == before


@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_a_damaged_sample_stops_no_report(finished, tmp_path, damage):
    finding = next(one for one in finished.outcomes() if one.trigger is not None)
    path = finished.folder / "samples" / finding.trigger[:2] / f"{finding.trigger}.npy"
    content = path.read_bytes()
    path.write_bytes({"cut": content[:-9], "changed": content[:-1] + b"\7"}.get(damage, b""))
    if damage == "missing":
        path.unlink()
    exported = export_campaign(finished, tmp_path / "pictures")
    page = write_html_report(finished, tmp_path / "report.html")
    assert exported.notices == page.notices
    assert len(page.notices) == 1
    assert finding.trigger in page.notices[0]
    assert (exported.findings, page.findings) == (7, 7)
    assert sum(not row["files"] for row in rows_of(tmp_path / "pictures")) == 1
    assert finding.trigger in (tmp_path / "report.html").read_text()
    written = write_text_report(finished.folder, "markdown", tmp_path / "report.md")
    assert written.pictures > 0
    assert finding.trigger in (tmp_path / "report.md").read_text()
