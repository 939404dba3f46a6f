"""Running an analysis: what is stored, what an interrupted one goes on with, and what is shown."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from edgeflare.analysis import RunContext
from edgeflare.analysis.base import run_as, sections_of
from edgeflare.campaign import Event, Notice, Stage, Step
from edgeflare.document import Block, Heading, Section, Text
from edgeflare.errors import UsageError
from edgeflare.store import CampaignLock, SeedInput, Store

STEPS = 5


class Settings(BaseModel):
    """How far it comes before it is interrupted."""

    base: int = 1


@dataclass(frozen=True)
class Sum:
    """A sum, and how many of its terms were computed in this run."""

    total: int
    computed: int


class Summing:
    """Adds some numbers, each kept as soon as it is known; it is interrupted after `until` of them."""

    about = "Add numbers."
    settings, result = Settings, Sum
    until = STEPS
    stored = True

    def run(self, campaign: Store, settings: Settings, context: RunContext) -> Sum:
        assert context.folder("again") == campaign.folder / "again"
        computed = 0
        for step in range(STEPS):
            if computed == self.until:
                raise KeyboardInterrupt
            if str(step) not in context.resume:
                context.resume[str(step)] = settings.base + step
                computed += 1
        return Sum(sum(context.resume.values()), computed)

    def sections(self, result: Sum) -> list[Block]:
        return [Heading("A sum"), Text(str(result.total))]


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    with Store.create(tmp_path / "c", {}) as store:
        return store.folder


def run(campaign: Path, until: int = STEPS, **settings: int) -> Sum:
    plugin = Summing()
    plugin.until = until
    result: Sum = run_as(plugin, "summing", campaign, settings, RunContext())  # type: ignore[arg-type]
    return result


def test_an_interrupted_run_goes_on_with_the_same_settings_alone(campaign: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(campaign, until=3)
    assert run(campaign, base=2) == Sum(20, STEPS)
    assert run(campaign) == Sum(15, 2)
    assert run(campaign) == Sum(15, STEPS)  # of a finished run nothing is left
    with Store.open(campaign) as store:
        assert store.result("summing", Sum) == Sum(15, STEPS)
        assert [one.settings for one in store.results()] == [{"base": n} for n in (1, 2, 1)]
        assert [one.number for one in store.results()] == [1, 2, 3]


def test_of_what_is_not_stored_nothing_is_kept_once_it_ends(campaign: Path) -> None:
    plugin = Summing()
    plugin.stored = False
    for _ in range(2):
        assert run_as(plugin, "summing", campaign, {}, RunContext()) == Sum(15, STEPS)  # type: ignore[arg-type]
    with Store.open(campaign) as store:
        assert store.results() == []
        assert dict(store.analysis_run("summing", {"base": 1}).parts) == {}


def test_an_interrupted_run_begins_anew_where_the_campaign_has_gone_on(campaign: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(campaign, until=3)
    with Store.open(campaign) as store:
        store.add_seeds([SeedInput("x", np.zeros((2, 2, 3), np.uint8))])
    assert run(campaign) == Sum(15, STEPS)


def test_what_an_analysis_tells_begins_a_stage_whenever_it_is_of_something_else() -> None:
    events: list[Event] = []
    context = RunContext(progress=events.append)
    for what, done in (("inputs", 3), ("inputs", 4), ("layers", 1)):
        context.tell(what, done, 10)
    inputs, layers = Stage("inputs", "", 10), Stage("layers", "", 10)
    assert events == [inputs, Step(3), Step(4), layers, Step(1)]


def test_while_the_campaign_runs_the_result_is_told_and_not_stored(campaign: Path) -> None:
    events: list[Event] = []
    with CampaignLock(campaign):
        context = RunContext(progress=events.append)
        result = run_as(Summing(), "summing", campaign, {}, context)  # type: ignore[arg-type]
    assert result == Sum(15, STEPS)
    assert [type(event) for event in events] == [Notice]
    with Store.open(campaign) as store:
        assert store.result("summing", Sum) is None
    assert run(campaign) == Sum(15, 0)  # what it kept is there all the same


def test_one_of_several_campaigns_gets_their_folders(tmp_path: Path) -> None:
    class Counting(Summing):
        def run(self, campaign: list[Path], settings: Settings, context: RunContext) -> Sum:  # type: ignore[override]
            return Sum(len(campaign), 0)

    folders = [tmp_path / "a", tmp_path / "b"]
    assert run_as(Counting(), "counting", folders, {}, RunContext()) == Sum(2, 0)  # type: ignore[arg-type]


def test_settings_that_it_doesnt_take_are_named(campaign: Path) -> None:
    with pytest.raises(UsageError, match="base"):
        run_as(Summing(), "summing", campaign, {"base": "x"}, RunContext())  # type: ignore[arg-type]


def test_blocks_alone_are_one_section_with_their_heading_as_its_title() -> None:
    (section,) = sections_of(Summing(), "summing", Sum(15, 0), str)  # type: ignore[arg-type]
    assert section == Section("analysis-summing", "A sum", (Text("15"),), data=Sum(15, 0))


def test_one_that_returns_something_else_than_its_result_is_named(campaign: Path) -> None:
    class Forgetful(Summing):
        def run(self, campaign: Store, settings: Settings, context: RunContext) -> None:  # type: ignore[override]
            """Return nothing."""

    with pytest.raises(TypeError, match="returned NoneType, which isn't its result Sum"):
        run_as(Forgetful(), "sum", campaign, {}, RunContext())
    with Store.open(campaign) as store:
        assert not store.results()
