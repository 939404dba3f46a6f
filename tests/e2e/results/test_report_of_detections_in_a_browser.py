"""The report of a campaign of detectors as people open it: boxes over the pictures, on a desktop and a phone."""

from pathlib import Path
from typing import Any

import pytest
from browser import DESKTOP, PHONE, Browser
from example_answers import NAMES
from stores import detection_campaign

from edgeflare import write_html_report

pytestmark = [pytest.mark.extended, pytest.mark.browser]

KINDS = ("lost", "ghost", "class", "shift")
CARDS = "[...document.querySelectorAll('#gallery article')]"
OF_KIND = f"{CARDS}.find(card => card.dataset.pair === arguments[0])"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = detection_campaign(tmp_path_factory.mktemp("c") / "c", KINDS, natural={4: "lost"})
    write_html_report(folder, folder / "report.html", class_names=NAMES)
    return folder / "report.html"


def opened(window: Browser, page: Path) -> Browser:
    window.open(page)
    window.wait(f"{CARDS}.length === 5")
    return window


def place(window: Browser, pair: str, picture: int) -> Any:
    """Return where a card's picture and its marked box are on the page: left, top, right, bottom."""
    return window.run(
        f"const figure = {OF_KIND}.querySelectorAll('.boxed')[arguments[1]];"
        "return [figure.querySelector('img'), figure.querySelector('.mark:not(.same)')].map(one =>"
        " { const box = one.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom] })",
        pair,
        picture,
    )


@pytest.mark.parametrize(("size", "large"), [(DESKTOP, True), (PHONE, False)])
def test_a_box_lies_where_the_model_saw_the_object(window, report, size, large) -> None:
    window.resize(size)
    opened(window, report)
    if large:
        window.run("for (const one of document.querySelectorAll('.enlarge')) one.click()")
    window.run(f"{OF_KIND}.querySelector('.boxes').scrollIntoView()", "lost:0")
    window.wait(
        f"[...{OF_KIND}.querySelectorAll('.boxed img')].every(one => one.complete && one.naturalWidth)",
        "lost:0",
    )
    image, mark = place(window, "lost:0", 3)  # seed and trigger, by both models: the last
    width, height = image[2] - image[0], image[3] - image[1]
    shares = [(mark[i] - image[i % 2]) / (width, height)[i % 2] for i in range(4)]
    assert shares == pytest.approx([0.1, 0.2, 0.4, 0.8], abs=0.01)
    assert window.overflow() <= 0
    assert window.complaints() == []


def test_each_kind_has_a_look_of_its_own_without_its_colour(window: Browser, report: Path) -> None:
    opened(window, report)
    looks = window.run(
        "return [...document.querySelectorAll('#scales .boxkey')].slice(1, 5)"
        ".map(one => getComputedStyle(one).borderTopStyle + getComputedStyle(one).borderTopWidth)"
    )
    assert len(set(looks)) == 4
    signs = window.run(
        "return [...document.querySelectorAll('#scales .sign')]"
        ".map(one => getComputedStyle(one, '::before').content)"
    )
    assert len(set(signs)) == 4


def test_pictures_say_what_each_model_sees_and_the_list_tells_both_scores(window, report) -> None:
    opened(window, report)
    alts = window.run(
        f"return [...{OF_KIND}.querySelectorAll('.boxed img')].map(one => one.alt)", "lost:0"
    )
    assert "original model's boxes" in alts[2]
    assert "deployed model's boxes" in alts[3]
    listed = window.run(f"return {OF_KIND}.querySelector('.differences').textContent", "lost:0")
    assert "lost person" in listed
    assert "0.62 against 0.47" in listed
    assert "margins 0.120, 0.030" in listed


def test_a_number_of_the_table_filters_the_gallery(window: Browser, report: Path) -> None:
    opened(window, report)
    window.run("document.querySelector('#differences a[data-pair=\"ghost:1\"]').click()")
    window.wait(f"{CARDS}.length === 1")
    assert window.run(f"return {CARDS}[0].querySelector('h3').textContent") == "ghost dog"
    assert window.run("return document.querySelector('#filters [name=pair]').value") == "ghost:1"


@pytest.mark.parametrize(
    ("theme", "size"), [("light", DESKTOP), ("dark", PHONE)], ids=["desktop", "phone"]
)
def test_the_page_is_accessible_and_asks_for_nothing(window, report, theme, size) -> None:
    window.resize(size)
    window.theme(theme)
    opened(window, report)
    window.show("matrix", f"detections-matrix-{theme}")
    window.show("gallery", f"detections-gallery-{theme}")
    assert window.axe() == []
    assert {one.partition(":")[0] for one in window.requests()} <= {"file", "data"}


def test_pictures_of_a_campaign_of_wide_images_enlarge_too(window, report, tmp_path) -> None:
    text = report.read_text()
    wide = text.replace('"wide":false', '"wide":true')
    assert wide != text
    (tmp_path / "wide.html").write_text(wide)
    opened(window, tmp_path / "wide.html")
    assert window.run("return document.querySelectorAll('.enlarge').length") == 5
