"""The report as one HTML file: complete, safe whatever things are called, small enough, without a network."""

import base64
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from edgeflare import StoreError, UsageError, write_html_report
from edgeflare.answers import SCORES
from edgeflare.reports.html import page as html_page
from edgeflare.reports.html.media import picture
from edgeflare.types import Status

HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"&amp;<!--"

Read = Callable[[Path], Any]


@pytest.fixture
def written(campaign: Any, tmp_path: Path, read: Read) -> Callable[..., Any]:
    """Writes the report of the campaign, finished, and returns what was written and the page."""

    def write(name: str = "report.html", **options: Any) -> tuple[Any, Any]:
        report = write_html_report(campaign.finish(), tmp_path / name, **options)
        return report, read(tmp_path / name)

    return write


def decoded(address: str, folder: Path) -> np.ndarray:
    """Return a picture of the page, grey or RGB."""
    if address.startswith("data:"):
        data = base64.b64decode(address.partition(",")[2], validate=True)
    else:
        data = (folder / address).read_bytes()
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert image is not None
    return image[:, :, None] if image.ndim == 2 else image[:, :, ::-1]


def test_every_finding_is_in_the_data_with_its_figures(
    campaign: Any, tmp_path: Path, written: Any
) -> None:
    campaign.add(pair=(0, 1), margin=0.25)
    campaign.add(Status.EXHAUSTED)
    campaign.add(Status.SEED_DEVIATES, pair=(2, 1))
    campaign.add(Status.UNSTABLE, pair=(1, 0), detail="agreed the second time")
    report, page = written()
    assert report.findings == len(page.rows) == 3
    assert report.bytes == (tmp_path / "report.html").stat().st_size
    first, second, third = page.rows
    known = first["seed"], first["original"], first["deployed"], first["label"]
    assert known == ("seed-1.png", 0, 1, 2)
    assert (first["original_margin"], first["deployed_margin"]) == (0.25, 0.35)
    assert (first["search_queries"], first["confirmation_queries"]) == (3, 2)
    assert (first["confirmed"], first["seconds"]) == (2, 0.5)
    assert first["scores"] == [[0, 0.625, 0.1875], [1, 0.1875, 0.625], [2, 0.1875, 0.1875]]
    assert shlex.split(first["command"])[-2:] == ["--trigger", "seed-1.png"]
    assert second["seed_picture"] is second["difference_picture"] is None
    assert (third["status"], third["detail"]) == ("unstable", "agreed the second time")


@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "rgb"])
def test_a_small_picture_has_exactly_its_pixels_and_the_difference_its_factor(
    campaign: Any, tmp_path: Path, channels: int, written: Any
) -> None:
    image, trigger = campaign.add(channels=channels)
    _, page = written()
    row, pictures = page.rows[0], page.data["pictures"]
    np.testing.assert_array_equal(decoded(pictures[row["seed_picture"]], tmp_path), image)
    np.testing.assert_array_equal(decoded(pictures[row["trigger_picture"]], tmp_path), trigger)
    change = (decoded(pictures[row["difference_picture"]], tmp_path).astype(float) - 128) / row[
        "amplification"
    ]
    np.testing.assert_allclose(change, trigger.astype(float) - image, atol=0.51)


def test_a_large_picture_becomes_a_thumbnail(campaign: Any, tmp_path: Path, written: Any) -> None:
    campaign.add(side=300, channels=3)
    campaign.add(side=120)
    pictures = written()[1].data["pictures"]
    shapes = {decoded(one, tmp_path).shape for one in pictures}
    assert shapes == {(224, 224, 3), (120, 120, 1)}
    assert all(one.startswith("data:image/jpeg;base64,") for one in pictures)


def test_a_line_of_text_becomes_a_larger_thumbnail() -> None:
    data = picture(np.full((96, 640, 3), 200, np.uint8)).data
    assert cv2.imdecode(np.frombuffer(data, np.uint8), 1).shape == (67, 448, 3)


def test_names_that_are_markup_stay_text(campaign: Any, written: Any) -> None:
    campaign.add(name=HOSTILE, device_name=HOSTILE)
    campaign.add(Status.FAILED, name=f"2{HOSTILE}", detail=HOSTILE)
    campaign.store.add_notice(HOSTILE)
    names = [HOSTILE, "a\u2028</SCRIPT >b", "c"]
    _, page = written(class_names=names)
    assert page.rows[0]["seed"] == page.rows[0]["device"] == HOSTILE
    assert page.data["classes"] == {"0": HOSTILE, "1": "a </SCRIPT >b", "2": "c"}
    assert page.having("script", type="application/json") == [
        {"type": "application/json", "id": "data"}
    ]
    assert len(page.scripts) == 3
    assert not any("alert" in script for script in (page.scripts[0], page.scripts[2]))
    assert not page.having("img")
    assert not any(name.startswith("on") for _, found in page.elements for name in found)
    assert page.text.count("alert(1)") >= 4
    assert {one["value"] for one in page.having("option")} >= {HOSTILE, "0-1"}


def test_the_page_asks_for_nothing_from_a_network(campaign: Any, written: Any) -> None:
    campaign.add(name="http://example.org/seed.png")
    _, page = written()
    referring = ("src", "href", "srcset", "action", "data", "poster", "xlink:href")
    addresses = [found.get(name) or "" for _, found in page.elements for name in referring]
    assert all(one == "" or one.startswith(("#", "data:")) for one in addresses)
    assert all(one.startswith("data:") for one in page.data["pictures"])
    for style in page.styles:
        assert not re.search(r"url\(|@import", style)
    for script in (page.scripts[0], page.scripts[-1]):
        assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(", script)
    assert page.having("meta", **{"http-equiv": "Content-Security-Policy"})


def test_no_more_than_asked_for_is_embedded_and_the_rest_lies_beside(
    campaign: Any, tmp_path: Path, written: Any
) -> None:
    for number in range(12):
        campaign.add(pair=(0, 1 + number % 2), margin=0.1 + 0.01 * number, side=40)
    report, page = written("night.html", embed_mb=0.03)
    pictures = page.data["pictures"]
    embedded = [one for one in pictures if one.startswith("data:")]
    beside = {one for one in pictures if not one.startswith("data:")}
    assert 0 < sum(map(len, embedded)) <= 30_000
    assert (report.embedded, report.beside) == (len(embedded), len(beside))
    files = {path.name for path in (tmp_path / "night-pictures").iterdir()}
    assert beside == {f"night-pictures/{name}" for name in files}
    shown = {row["seed"] for row in page.rows if row["trigger_picture"] < len(embedded)}
    assert shown >= {"seed-12.png", "seed-11.png"}  # the severest of each of the two pairs


def test_a_second_report_uses_the_pictures_again_and_removes_stale_ones(
    campaign: Any, tmp_path: Path
) -> None:
    campaign.add()
    campaign.add()
    folder = tmp_path / "report-pictures"
    path = tmp_path / "report.html"
    first = write_html_report(campaign.store, path, embed_mb=0)
    files = {one.name: one.stat().st_mtime_ns for one in folder.iterdir()}
    assert len(files) == first.beside == 6
    stale = folder / f"{'0' * 24}.png"
    stale.write_bytes(b"from an earlier report")
    (folder / "mine.txt").write_text("not a picture of a report")
    campaign.add()
    write_html_report(campaign.finish(), path, embed_mb=0)
    again = {one.name: one.stat().st_mtime_ns for one in folder.iterdir()}
    assert files.items() <= again.items()
    assert len(again) == 9 + 1
    assert not stale.exists()
    write_html_report(campaign.store, path)
    assert [one.name for one in folder.iterdir()] == ["mine.txt"]


def test_a_seed_of_several_devices_is_there_once(campaign: Any, written: Any) -> None:
    campaign.add(Status.SEED_DEVIATES, name="one")
    outcome = next(campaign.store.outcomes())
    campaign.store.state.replicas = ["", "other"]
    campaign.store.add_outcome(replace(outcome, replica="other", device_name="other"))
    report, page = written()
    assert report.findings == 2
    assert len(page.data["pictures"]) == report.embedded == 1


def test_of_too_many_findings_the_most_severe_of_each_group_are_shown(
    campaign: Any, monkeypatch: pytest.MonkeyPatch, written: Any
) -> None:
    for number in range(6):
        campaign.add(pair=(0, 1) if number < 5 else (2, 1), margin=0.5 - 0.05 * number)
    monkeypatch.setattr(html_page, "MOST_SHOWN", 2)
    report, page = written()
    assert report.findings == 6
    assert [row["seed"] for row in page.rows] == ["seed-1.png", "seed-6.png"]
    assert "2 most severe" in page.text


@pytest.mark.parametrize(
    ("place", "embed_mb", "words"),
    [
        *(("report.html", size, "embed_mb") for size in (-1.0, float("nan"), float("inf"))),
        ("folder", 10, "folder; name"),
        ("file/report.html", 10, "choose another"),
    ],
)
def test_a_size_or_a_place_that_is_none_is_refused(
    campaign: Any, tmp_path: Path, place: str, embed_mb: float, words: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises((UsageError, StoreError), match=words):
        write_html_report(campaign.store, tmp_path / place, embed_mb=embed_mb)


def test_too_few_class_names_are_refused_and_leave_an_earlier_report(
    campaign: Any, tmp_path: Path
) -> None:
    campaign.add()
    path = tmp_path / "report.html"
    path.write_text("an earlier report")
    with pytest.raises(UsageError, match="class names"):
        write_html_report(campaign.store, path, class_names=["only one"])
    assert path.read_text() == "an earlier report"
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_scores_that_are_no_numbers_are_reported_as_such() -> None:
    top = SCORES.top_scores(np.array([0.2, np.nan, np.inf]), None)
    assert [2, "inf", None] in top
    assert [1, "NaN", None] in top
