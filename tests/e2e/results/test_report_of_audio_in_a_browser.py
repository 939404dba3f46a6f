"""The reports of a keyword spotter and of a speech recogniser as people open them: heard, seen, filtered, read aloud."""

from pathlib import Path
from typing import Any

import pytest
from browser import DESKTOP, PHONE, Browser
from page_stores import KEYWORDS, LINES, audio_campaign

from edgeflare import write_html_report

pytestmark = [pytest.mark.extended, pytest.mark.browser]

CARDS = "[...document.querySelectorAll('#gallery article')]"
COUNT = 13


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both reports; of the recogniser's some sounds are in the page and the others beside it."""
    root = tmp_path_factory.mktemp("audio-reports")
    pages = {}
    for kind, embed_mb in (("keywords", 10), ("speech", 0.5)):
        folder, _ = audio_campaign(root / kind, kind, COUNT - 1)  # type: ignore[arg-type]
        pages[kind] = folder / "report.html"
        names = KEYWORDS if kind == "keywords" else None
        written = write_html_report(folder, pages[kind], class_names=names, embed_mb=embed_mb)
        assert written.embedded > 0
        assert (written.beside > 0) == (kind == "speech")
    return pages


def opened(window: Browser, page: Path) -> Browser:
    """Return the browser with this page opened and its cards made."""
    window.open(page)
    window.wait(f"{CARDS}.length > 0")
    return window


def cards(window: Browser, what: str) -> list[Any]:
    return window.run(f"return {CARDS}.map(card => {what})")


def choose(window: Browser, name: str, value: str) -> None:
    window.run(
        "const field = document.querySelector(`#gallery [name=${arguments[0]}]`);"
        "field.value = arguments[1];"
        "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {bubbles: true}))",
        name,
        value,
    )


@pytest.mark.parametrize("kind", ["keywords", "speech"])
def test_every_sound_can_be_played_offline_and_is_loaded_only_then(window, reports, kind) -> None:
    opened(window, reports[kind])
    assert cards(window, "[...card.querySelectorAll('audio')].map(one => one.preload)") == [
        ["none"] * count for count in cards(window, "card.querySelectorAll('audio').length")
    ]
    assert set(cards(window, "card.querySelectorAll('audio').length")) == {1, 2}
    window.run("for (const one of document.querySelectorAll('audio')) one.load()")
    window.run("for (const one of document.querySelectorAll('audio')) one.preload = 'metadata'")
    window.wait("[...document.querySelectorAll('audio')].every(one => one.readyState > 0)")
    lengths = cards(window, "[...card.querySelectorAll('audio')].map(one => one.duration)")
    assert {length for card in lengths for length in card} == {1.0, 1.2}
    assert window.complaints() == []
    assert {one.partition(":")[0] for one in window.requests()} <= {"file", "data"}


def test_one_sound_plays_at_a_time_and_the_keyboard_starts_it(window, reports) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(window, reports["keywords"])
    window.run("for (const one of document.querySelectorAll('audio')) one.loop = true")
    for place in (0, 1):
        window.run("document.querySelectorAll('audio')[arguments[0]].focus()", place)
        window.type(Keys.SPACE)
        window.wait(
            "[...document.querySelectorAll('audio')].every((one, at) => one.paused === (at !== arguments[0]))",
            place,
        )


def test_players_and_pictures_say_what_they_are(window: Browser, reports: dict[str, Path]) -> None:
    opened(window, reports["speech"])
    choose(window, "seed", "clips/001.wav")
    assert (
        "seed input clips/001.wav"
        in cards(window, "[...card.querySelectorAll('audio')].map(one => one.ariaLabel)")[0][0]
    )
    trigger = cards(window, "card.querySelectorAll('audio')[1].ariaLabel")[0]
    assert all(text in trigger for text in LINES[1])
    pictures = cards(window, "[...card.querySelectorAll('img')].map(one => one.alt)")[0]
    assert len(pictures) == 3
    assert "8 kHz upwards" in pictures[0]
    axes = cards(window, "card.querySelector('.hertz').textContent")[0]
    assert axes == "8 kHz40"


def test_words_that_differ_are_reported_without_colours(window, reports) -> None:
    opened(window, reports["speech"])
    choose(window, "seed", "clips/001.wav")
    (title,) = cards(window, "card.querySelector('h3').textContent")
    assert "“lights” → “light”" in title
    (marks,) = cards(window, "[...card.querySelectorAll('mark')].map(one => one.textContent)")
    assert marks == ["lights", "the", "light", "a"]
    lines = window.run("return getComputedStyle(document.querySelector('mark')).textDecorationLine")
    assert lines == "underline"
    choose(window, "seed", "clips/004.wav")
    (texts,) = cards(window, "[...card.querySelectorAll('.texts dd')].map(one => one.textContent)")
    assert texts == [LINES[4][0], "(nothing)", LINES[4][0]]


def test_findings_are_found_by_their_words(window: Browser, reports: dict[str, Path]) -> None:
    opened(window, reports["speech"])
    assert len(cards(window, "1")) == COUNT
    expected = [number for number in range(COUNT) if number % len(LINES) in (0, 2)]
    window.run("document.querySelector('#words a[data-pair=\"no→go\"]').click()")
    window.wait(f"{CARDS}.length < {COUNT}")
    assert len(cards(window, "1")) == len(expected)
    address = window.run("return location.href")
    opened(window, reports["speech"])
    window.open(address)
    window.wait(f"{CARDS}.length === {len(expected)}")
    choose(window, "pair", "")
    choose(window, "text", "KITCHEN, please")
    assert set(cards(window, "card.querySelector('mark').textContent")) == {"lights"}
    choose(window, "text", "")
    choose(window, "sort", "clearest")
    ratios = cards(window, "card.textContent.match(/SNR(-?[\\d.]+) dB/)?.[1] ?? '-1000'")
    numbers = list(map(float, ratios))
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > 20


def test_keywords_are_filtered_by_their_classes(window: Browser, reports: dict[str, Path]) -> None:
    opened(window, reports["keywords"])
    choose(window, "pair", "0-1")
    assert set(cards(window, "card.querySelector('h3').textContent")) == {"yes → no"}
    assert window.run("return document.querySelector('#gallery [name=text]')") is None


@pytest.mark.extended
@pytest.mark.parametrize(
    ("kind", "theme", "size"), [("keywords", "light", DESKTOP), ("speech", "dark", PHONE)]
)
def test_anybody_can_read_a_report_of_sounds(window, reports, kind, theme, size) -> None:
    window.theme(theme)
    window.resize(size)
    opened(window, reports[kind])
    assert window.overflow() == 0
    tall = window.run(
        "const facts = [...document.querySelectorAll('#gallery article dl:not(.texts) div:not(.whole) dd')];"
        "return facts.filter(one => one.getClientRects()[0].height > 30).map(one => one.textContent)"
    )
    assert tall == []
    for part in ("main", "matrix", "gallery", "cards", "figures"):
        window.show(part, f"{kind}-{theme}-{size[0]}-{part}")
    window.run("document.querySelector('#scales details').open = true")
    window.open(f"{reports[kind].as_uri()}#seed=clips/001.wav")
    window.wait(f"{CARDS}.length === 1")
    assert window.axe() == []
    assert window.complaints() == []
