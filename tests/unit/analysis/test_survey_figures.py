"""A survey's figures: what counts as an input, as a deviation, and how the rates are bounded."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_distributions import install_corruption, write_distribution
from stores import store_of

from edgeflare.analysis import SurveyFigures, check_limits, survey_figures
from edgeflare.campaign import LimitsConfig
from edgeflare.document import Block, Figures, Table
from edgeflare.reports.document import to_markdown
from edgeflare.reports.survey.document import (
    charted_groups,
    survey_chart,
    survey_figures_list,
    survey_key_figures,
    survey_tables,
    worst_table,
)
from edgeflare.statistics import clustered_interval
from edgeflare.store import Store, SurveyedSeed, SurveyRecord
from edgeflare.survey import families_for
from edgeflare.types import Decision

FAMILIES = families_for("image", channels=1)
IMAGE = np.zeros((8, 8, 1), np.uint8)
SURE, OTHER, BROKEN = np.array([0.9, 0.1]), np.array([0.3, 0.7]), np.array([np.nan, 0.5])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Four seeds, all answered."""
    config = {"survey": {"enabled": True, "sure": 0.3}, "search": {"strategy": "none"}}
    names = [f"s{number}" for number in range(4)]
    about = {"seeds": names, "answers": (SURE, SURE), "config": config}
    with store_of(tmp_path / "campaign", sample=lambda place: IMAGE + 30 * place, **about) as made:
        yield made


def record(seed: str, number: int, family: str, severity: int, **changes: Any) -> SurveyRecord:
    values: dict[str, Any] = {
        "params": FAMILIES[family].draw(np.random.default_rng(number), IMAGE, severity),
        "sample": f"{seed}-{number}",
        "original": SURE,
        "deployed": SURE,
        "decision": Decision.AGREE,
        "original_margin": 0.8,
        "deployed_margin": 0.8,
        "total_variation": 0.125,
        **changes,
    }
    return SurveyRecord(seed, number, family, severity, **values)


def deviation(seed: str, number: int, family: str, severity: int, **changes: Any) -> SurveyRecord:
    values = {"deployed": OTHER, "decision": Decision.DEVIATION, "deployed_margin": 0.4}
    values |= {"total_variation": 0.625, "confident_deviation": True, "confirmed": 2}
    return record(seed, number, family, severity, **values | changes)


def add(store: Store, seed: str, records: Sequence[SurveyRecord]) -> None:
    store.add_survey(records, [SurveyedSeed(seed, len(records), 0, 4)])


def figures(store: Store) -> SurveyFigures:
    found = survey_figures(store)
    assert found is not None
    return found


def survey_blocks(found: SurveyFigures, *, brief: bool = False) -> list[Block]:
    """What a text says of a survey."""
    figures_ = Figures(tuple(survey_figures_list(found)))
    return [figures_, *survey_tables(found, brief=brief), *worst_table(found)]


def test_without_a_survey_there_are_no_figures(store: Store) -> None:
    assert survey_figures(store) is None
    assert list(survey_key_figures(None)) == []


def test_rates_count_confirmed_deviations_among_the_inputs_that_were_answered(store: Store) -> None:
    unsteady = deviation("s0", 2, "gain", 1, confident_deviation=False, confirmed=1)
    add(store, "s0", [deviation("s0", 0, "gain", 5), record("s0", 1, "noise", 2), unsteady])
    silent = record("s1", 0, "gain", 5, deployed=None, decision=Decision.UNDECIDED)
    broken = deviation("s1", 1, "noise", 5, deployed=BROKEN, decision=Decision.NONFINITE)
    add(store, "s1", [silent, broken])
    add(store, "s2", [])
    found = figures(store)
    assert (found.overall.deviations, found.overall.inputs, found.overall.seeds) == (2, 4, 2)
    assert (found.overall.low, found.overall.high) == clustered_interval([1, 1], [3, 1])
    assert (found.unstable, found.failed, found.nonfinite) == (1, 1, 1)
    assert (found.seeds, found.seeds_in_all, found.seeds_unsure) == (3, 4, 1)
    assert not found.finished
    assert {one.family: one.rate.inputs for one in found.by_family} == {"gain": 2, "noise": 2}
    deviations = [(one.severity, one.rate.deviations) for one in found.by_severity]
    assert deviations == [(1, 0), (2, 0), (5, 2)]
    # over all answered inputs
    assert found.mean_total_variation == pytest.approx((3 * 0.625 + 0.125) / 4)
    assert found.queries == {"survey": 5, "confirmation": 0, "host_only": 12}


def test_a_seed_at_which_the_original_fails_is_not_unsure(store: Store) -> None:
    add(store, "s0", [record("s0", 0, "gain", 1)])
    add(store, "s1", [])
    store.add_survey([], [SurveyedSeed("s2", host_only_queries=4, detail="it ran out of memory")])
    found = figures(store)
    assert (found.seeds, found.seeds_unsure, found.seeds_failed) == (3, 1, 1)
    text = to_markdown(survey_blocks(found))
    assert "seeds without" in text
    assert "answer | 1" in text


def test_an_input_that_is_made_from_several_seeds_counts_once(store: Store) -> None:
    white = {"sample": "all white", "total_variation": 1.0}
    add(store, "s0", [deviation("s0", 0, "gain", 5, **white), record("s0", 1, "noise", 1)])
    for seed in ("s1", "s2"):
        add(store, seed, [deviation(seed, 0, "gain", 5, **white)])
    found = figures(store)
    assert (found.overall.deviations, found.overall.inputs, found.repeated) == (1, 2, 2)
    assert found.seeds_unsure == 0
    assert found.mean_total_variation == pytest.approx((1 + 0.125) / 2)
    assert len(found.worst) == 2


def test_a_broken_plugin_leaves_other_families_their_words(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_corruption(tmp_path / "sound", "dusk")
    install_corruption(tmp_path / "taken", "patch")
    entry = {"edgeflare.mutators/torn": "Torn"}
    write_distribution(tmp_path / "broken", "torn_family", "import no_such_library", entry, "torn")
    for site in ("sound", "taken", "broken"):
        monkeypatch.syspath_prepend(tmp_path / site)
    store.state.families = ["gain", "dusk"]
    add(store, "s0", [replace(deviation("s0", 0, "gain", 5), family="dusk", params={"levels": 90})])
    assert figures(store).worst[0].words == "darker by 90"


def test_families_without_a_deviation_share_one_rate(store: Store) -> None:
    add(store, "s0", [deviation("s0", 0, "gain", 1), record("s0", 1, "noise", 2)])
    add(store, "s1", [record("s1", 0, "mix", 3), record("s1", 1, "noise", 4)])
    found = figures(store)
    assert (found.others.deviations, found.others.inputs, found.others.seeds) == (0, 3, 2)
    tables = [one for one in survey_blocks(found) if isinstance(one, Table)]
    assert [one.family for one in tables[0].rows] == ["gain", "2 families without one"]


def test_the_worst_come_first_by_the_smaller_margin_then_the_others_by_distance(
    store: Store,
) -> None:
    agreeing = [record("s0", n, "gain", 1, total_variation=far) for n, far in ((0, 0.3), (3, 0.6))]
    narrow, wide = (
        deviation("s0", n, "gain", 2, deployed_margin=far) for n, far in ((1, 0.1), (2, 0.6))
    )
    add(store, "s0", [*agreeing, narrow, wide])
    assert [one.number for one in figures(store).worst] == [2, 1, 3, 0]


def test_a_survey_in_which_the_original_is_never_sure_says_so(store: Store) -> None:
    add(store, "s0", [])
    found = figures(store)
    assert found.overall is None
    (figure,) = survey_key_figures(found)
    assert "1 seed" in figure.text
    assert survey_chart(found) is None
    assert to_markdown(survey_blocks(found))


def test_the_chart_tells_each_rate_with_its_bounds_in_words(store: Store) -> None:
    records = [deviation("s0", number, "gain", 3 + number % 3) for number in range(15)]
    noise = [deviation("s0", number, "noise", 2) for number in range(15, 20)]
    add(store, "s0", [*records, *noise, record("s0", 20, "mix", 2)])
    found = figures(store)
    chart = survey_chart(found)
    assert chart is not None
    assert chart.count('class="bounds"') == 4
    assert "severity 2: 83.3" in chart
    assert "severity 5: 100" in chart
    assert charted_groups(found) == ["light"]  # the others have too few inputs, or severities


def test_where_nothing_deviates_a_terminal_has_a_line_in_place_of_tables(store: Store) -> None:
    add(store, "s0", [record("s0", 0, "gain", 5), record("s0", 1, "noise", 2)])
    found = figures(store)
    blocks = survey_blocks(found, brief=True)
    assert not [one for one in blocks if isinstance(one, Table)]
    assert "2 severities" in to_markdown(blocks)
    assert len([one for one in survey_blocks(found) if isinstance(one, Table)]) == 2
    add(store, "s1", [deviation("s1", 0, "gain", 5)])
    blocks = survey_blocks(figures(store), brief=True)
    assert len([one for one in blocks if isinstance(one, Table)]) == 3


def test_devices_that_surveyed_for_themselves_have_a_rate_each(store: Store) -> None:
    for name, made in (("pi", deviation), ("nano", record)):
        one = made("s0", 0, "gain", 5, replica=name)
        store.add_survey([one], [SurveyedSeed("s0", 1, replica=name)])
    found = figures(store)
    assert [(one.device, one.rate.deviations) for one in found.by_device] == [
        ("nano", 0),
        ("pi", 1),
    ]
    assert (found.overall.inputs, found.overall.seeds) == (2, 1)


@pytest.mark.parametrize(
    ("deviating", "limit", "state"),
    [(0, 0.03, "kept"), (0, 0.005, "undecided"), (1, 0.01, "undecided"), (9, 0.02, "crossed")],
)
def test_a_limit_of_the_rate_is_kept_crossed_or_undecided(
    tmp_path: Path, deviating: int, limit: float, state: str
) -> None:
    config = {"survey": {"sure": 0.3}}
    with store_of(tmp_path / "many", seeds=300, config=config, finished=True) as store:
        for place in range(300):
            made = deviation if place < deviating else record
            add(store, name := f"s/{place}.png", [made(name, 0, "gain", 5)])
        (check,) = check_limits(store, LimitsConfig(max_confident_deviation=limit))
    assert (check.crossed, check.undecided) == (state == "crossed", state == "undecided")
    assert ("inputs narrow" in check.words) == (state == "undecided")
