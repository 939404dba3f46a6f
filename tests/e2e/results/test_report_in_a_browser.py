"""The report of 500 triggers and the trend page as people open them: from a file, offline, in a real browser."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from browser import DESKTOP, PHONE, Browser
from nights import add_night, figures, red, run_of
from page_stores import DEVICES, HOSTILE, Planned, many_triggers, plan

from edgeflare import write_html_report
from edgeflare.nightly.history import History
from edgeflare.nightly.reports import write_page
from edgeflare.types import TRIGGERS, Status

pytestmark = [pytest.mark.extended, pytest.mark.browser]

TRIGGERS_IN_ALL = 500
CARDS = "[...document.querySelectorAll('#gallery article')]"
LOOKS = [
    pytest.param("light", DESKTOP, id="light-desktop"),
    pytest.param("dark", PHONE, id="dark-phone"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a campaign, some of its pictures in the page and the others beside it."""
    campaign = many_triggers(tmp_path_factory.mktemp("browser") / "campaign", TRIGGERS_IN_ALL)
    page = campaign / "report.html"
    written = write_html_report(campaign, page, embed_mb=0.1)
    assert written.embedded > 0
    assert written.beside > 0
    return page


@pytest.fixture(scope="module")
def trends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trend page of five nights: two models on two devices, one of which was away and got worse."""
    history = History(tmp_path_factory.mktemp("browser") / "history")
    for number in range(5):
        away = number == 1
        bad = red() if number == 3 else {"search": None if away else figures()}
        states = ("regression" if number == 3 else "away" if away else "green", "green")
        add_night(
            history,
            number,
            *(
                run_of(model, device, state, **values)
                for model in ("int8", "pruned")
                for device, state, values in zip(
                    ("pi-4", "local"), states, (bad, {"search": figures()}), strict=True
                )
            ),
        )
    return write_page(history)


@pytest.fixture
def opened(window: Browser, report: Path) -> Browser:
    """The report, opened."""
    window.open(report)
    window.wait(f"{CARDS}.length > 0")
    return window


def findings() -> list[Planned]:
    """Return the searches that left an input, which the gallery shows."""
    return [one for one in plan(TRIGGERS_IN_ALL) if one.status is not Status.EXHAUSTED]


def shown(window: Browser) -> int:
    """Return how many findings the page says it shows."""
    told = window.run("return document.querySelector('#shown').textContent")
    number = re.search(r"[\d,]+", told)
    return int(number[0].replace(",", ""))


def choose(window: Browser, name: str, value: str) -> None:
    """Set one filter as a person does: the field tells the page of its new value."""
    window.run(
        "const field = document.querySelector(`#gallery [name=${arguments[0]}]`);"
        "field.value = arguments[1];"
        "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {bubbles: true}))",
        name,
        value,
    )


def cards(window: Browser, what: str) -> list[Any]:
    """Return a value of each card that is there."""
    return window.run(f"return {CARDS}.map(card => {what})")


def scroll_to_the_end(window: Browser, wanted: int) -> None:
    """Scroll down from card to card until so many are there."""
    window.run_until(
        f"const all = {CARDS}; all.at(-1)?.scrollIntoView(); return all.length >= arguments[0]",
        wanted,
    )


def cut_numbers(window: Browser) -> list[str]:
    """Return the short facts of cards that take more than one line, so that a number may be cut in two."""
    return window.run(
        "const facts = [...document.querySelectorAll('#gallery article dl div:not(.whole) dd')];"
        "return facts.filter(one => one.getClientRects()[0].height > 30).map(one => one.textContent)"
    )


def test_it_opens_from_its_file_without_network_and_without_a_complaint(opened: Browser) -> None:
    scroll_to_the_end(opened, 100)
    asked = opened.requests()
    assert asked, "nothing was logged at all"
    assert {address.partition(":")[0] for address in asked} <= {"file", "data"}
    assert opened.complaints() == []


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("pair", "4-9", lambda one: one.pair == (4, 9) and one.labelled),
        ("cause", "hardware", lambda one: one.status in TRIGGERS and not one.shared),
        ("device", DEVICES[1], lambda one: one.device == DEVICES[1]),
        ("status", "failed", lambda one: one.status is Status.FAILED),
    ],
)
def test_a_filter_leaves_what_was_asked_for(opened, name, value, kept) -> None:
    assert shown(opened) == len(findings())
    wanted = sum(map(kept, findings()))
    assert 0 < wanted < len(findings())
    choose(opened, name, value)
    assert shown(opened) == wanted
    assert set(cards(opened, f"card.dataset.{name}")) == {value}
    opened.run("document.querySelector('#gallery button[type=reset]').click()")
    opened.wait(f"document.querySelector('#gallery [name={name}]').value === ''")
    opened.wait(f"new Set({CARDS}.map(card => card.dataset.{name})).size > 1")
    assert shown(opened) == len(findings())


@pytest.mark.slow
def test_filters_add_up(opened: Browser) -> None:
    choose(opened, "pair", "4-9")
    choose(opened, "device", DEVICES[0])
    wanted = [one for one in findings() if one.pair == (4, 9) and one.device == DEVICES[0]]
    assert shown(opened) == sum(one.labelled for one in wanted)
    choose(opened, "status", "failed")
    assert shown(opened) == 0
    assert cards(opened, "1") == []


@pytest.mark.extended
def test_the_distance_is_a_limit_and_the_cards_can_be_sorted_by_it(opened: Browser) -> None:
    choose(opened, "sort", "nearest")
    choose(opened, "status", "found")
    everything = shown(opened)
    choose(opened, "l2", "2.5")
    assert 0 < shown(opened) < everything
    scroll_to_the_end(opened, shown(opened))
    distances = [float(one) for one in cards(opened, "card.dataset.l2")]
    assert len(distances) == shown(opened)
    assert distances == sorted(distances)
    assert distances[-1] <= 2.5
    choose(opened, "sort", "seed")
    seeds = cards(opened, "card.dataset.seed")
    assert seeds[1:] == sorted(seeds[1:])


def test_a_cell_of_the_matrix_shows_its_triggers(opened: Browser) -> None:
    told = opened.run(
        "const links = [...document.querySelectorAll('#pairs a[data-pair]')];"
        "return links.map(link => [link.dataset.pair, Number(link.textContent)])"
    )
    counts = Counter(one.pair for one in findings() if one.status in TRIGGERS)
    assert dict(told) == {f"{one}-{other}": count for (one, other), count in counts.items()}
    opened.run("document.querySelector('#pairs a[data-pair=\"3-5\"]').click()")
    opened.wait(f"new Set({CARDS}.map(card => card.dataset.pair)).size === 1")
    assert set(cards(opened, "card.dataset.pair")) == {"3-5"}
    assert opened.run("return document.querySelector('#gallery [name=pair]').value") == "3-5"


@pytest.mark.extended
def test_every_filter_can_be_reached_and_set_by_the_keyboard_alone(opened: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    reached: list[str] = []
    for _ in range(100):
        opened.type(Keys.TAB)
        reached.append(opened.run("return document.activeElement.name ?? ''"))
        if reached[-1] == "device":
            opened.type(Keys.ARROW_DOWN)
        if reached[-1] == "sort":
            break
    names = [name for name in reached if name]
    assert names == ["pair", "cause", "device", "status", "l2", "seed", "sort"]
    first = opened.run("return document.querySelector('#gallery [name=device]').options[1].value")
    assert set(cards(opened, "card.dataset.device")) == {first}


def test_focus_is_seen(opened: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    for _ in range(12):
        opened.type(Keys.TAB)
        style = opened.run(
            "const style = getComputedStyle(document.activeElement);"
            "return [document.activeElement.outerHTML, style.outlineStyle, parseFloat(style.outlineWidth)]"
        )
        assert style[1] != "none", style
        assert style[2] >= 2, style


@pytest.mark.extended
def test_more_cards_come_as_one_scrolls_until_all_are_there(opened: Browser) -> None:
    choose(opened, "device", DEVICES[0])
    assert len(cards(opened, "1")) < shown(opened)
    scroll_to_the_end(opened, shown(opened))
    opened.wait("document.querySelector('#more').hidden")
    shows = cards(opened, "card.dataset.seed + card.dataset.device")
    assert len(shows) == len(set(shows)) == shown(opened)


@pytest.mark.extended
def test_an_address_restores_its_filter(opened: Browser, report: Path) -> None:
    choose(opened, "pair", "7-1")
    choose(opened, "cause", "compression")
    address, count = opened.run("return location.href"), shown(opened)
    assert count < len(findings())
    opened.open(report)
    opened.wait(f"{CARDS}.length > 0")
    assert shown(opened) == len(findings())
    opened.open(address)
    opened.wait(f"{CARDS}.length > 0")
    assert shown(opened) == count
    assert set(cards(opened, "card.dataset.pair")) == {"7-1"}


def test_the_pictures_in_the_page_and_next_to_it_are_seen(opened: Browser) -> None:
    choose(opened, "status", "found")
    scroll_to_the_end(opened, 96)
    told: Counter[str] = Counter()
    for place in (0, 95):
        pictures = f"[...{CARDS}[arguments[0]].querySelectorAll('img')]"
        opened.run(f"{CARDS}[arguments[0]].scrollIntoView()", place)
        opened.wait(f"{pictures}.every(one => one.complete)", place)
        seen = opened.run(
            f"return {pictures}.map(one => [new URL(one.src).protocol, one.naturalWidth, one.alt])",
            place,
        )
        assert len(seen) == 3
        for kind, width, alt in seen:
            assert width == 28
            assert alt.strip()
            told[kind] += 1
    assert told == {"data:": 3, "file:": 3}


def test_a_hostile_name_is_shown_and_runs_nothing(opened: Browser) -> None:
    choose(opened, "sort", "seed")
    assert HOSTILE in cards(opened, "card.dataset.seed")[0]
    assert HOSTILE in cards(opened, "card.textContent")[0]
    assert opened.run("return window.broken ?? null") is None
    assert opened.run("return document.querySelectorAll('img[src=x], [onerror]').length") == 0
    assert opened.complaints() == []


def test_dark_and_light_are_distinguished(opened: Browser) -> None:
    def background() -> tuple[int, ...]:
        told = opened.run("return getComputedStyle(document.body).backgroundColor")
        return tuple(map(int, re.findall(r"\d+", told)[:3]))

    light = background()
    opened.theme("dark")
    dark = background()
    assert min(light) > 200
    assert max(dark) < 60
    opened.run("document.getElementById('theme').click()")
    assert background() == light


@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_anybody_can_read_the_report(window, report, theme, size) -> None:
    window.theme(theme)
    window.resize(size)
    window.open(report)
    window.wait(f"{CARDS}.length > 0")
    assert window.overflow() == 0
    assert cut_numbers(window) == []
    for number, part in enumerate(("main", "pairs", "gallery", "cards", "figures", "devices"), 1):
        window.show(part, f"report-{theme}-{size[0]}-{number}-{part}")
    window.open(f"{report.as_uri()}#seed=digits/00001.png")
    window.wait(f"{CARDS}.length === 2")
    assert window.axe() == []


@pytest.mark.extended
@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_anybody_can_read_the_trends(window, trends, theme, size) -> None:
    window.theme(theme)
    window.resize(size)
    window.open(trends)
    window.show("main", f"trends-{theme}-{size[0]}")
    assert window.overflow() == 0
    assert window.axe() == []
    assert window.complaints() == []
    assert {address.partition(":")[0] for address in window.requests()} <= {"file", "data"}


@pytest.mark.slow
def test_the_trends_can_be_read_in_the_other_colours_than_the_systems(window, trends) -> None:
    window.open(trends)
    window.run("document.getElementById('theme').click()")
    assert window.run("return document.documentElement.dataset.theme") == "dark"
    assert window.axe() == []


def test_a_matrix_that_is_cut_says_that_it_scrolls(opened: Browser) -> None:
    hint = "document.querySelector('#pairs .sideways')"
    opened.resize(DESKTOP)
    opened.wait(f"{hint}.hidden")
    opened.resize((240, 844))
    opened.wait(f"!{hint}.hidden && {hint}.textContent.includes('scroll it sideways')")


def test_a_label_is_not_broken_within_a_word(opened: Browser) -> None:
    opened.resize(DESKTOP)
    lines = opened.run(
        "const row = [...document.querySelectorAll('.card dl div')].find("
        "one => one.querySelector('dt').textContent === 'label of the seed');"
        "const text = row.querySelector('dd'), range = document.createRange();"
        "text.textContent = 'airplane'; range.selectNodeContents(text);"
        "return range.getClientRects().length;"
    )
    assert lines == 1
