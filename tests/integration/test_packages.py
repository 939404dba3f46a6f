"""What other distributions bring is found when it is used; the core needs none of them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest
from plugin_distributions import write_distribution

from edgeflare import search
from edgeflare._internal import plugins
from edgeflare.analysis import stored_sections
from edgeflare.campaign import demo_config
from edgeflare.campaign.priority import priority_of
from edgeflare.errors import UsageError
from edgeflare.models import OriginalModel
from edgeflare.store import Store
from edgeflare.strategies import build_strategy, strategy_names

SOURCE = '''
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from pydantic import BaseModel, Field

from edgeflare import Ask, Decision, Outcome
from edgeflare.campaign.settings.flags import Flag
from edgeflare.reports.document import Figures, Heading, KeyFigure


def greet(name: Annotated[str, typer.Argument(help="Whom to greet.")]) -> None:
    """Greet somebody."""
    print(f"good day, {name}")


def stumble() -> None:
    """Raise what nobody expects."""
    raise KeyError("boom")


def unusual(x: int | str = 3) -> None:
    """Take what no command can take."""


class Mean:
    """The mean of what the original answers, times the question."""

    libraries = ("numpy",)

    def __init__(self, original):
        self.original = original

    def check(self, others):
        assert not others

    def answer(self, ask):
        return [float(np.mean(self.original.raw(one))) * ask.question for one in ask.samples]


@dataclass(frozen=True)
class Asking:
    """Asks the probe once, then noise."""

    probe = "mean"
    tries: int = 5

    def __call__(self, seed, rng):
        answer = yield Ask([seed.sample], of="original", want="mean", question=20.0)
        (mean,) = answer.probed
        for size in range(self.tries):
            noise = rng.integers(-round(mean) - size, round(mean) + size, seed.sample.shape, endpoint=True)
            sample = np.clip(seed.sample + noise, 0, 255).astype(np.uint8)
            answer = yield Ask([sample])
            if answer.outputs[0].decision is Decision.DEVIATION:
                return Outcome(sample)
        return Outcome(None, reason=f"the mean was {mean:.1f}")


class Settings(BaseModel):
    least: Annotated[int, Flag("--least", metavar="N")] = Field(0, ge=0, description="At least so many queries.")
    names: Annotated[tuple[str, ...], Flag("--name", metavar="NAME")] = Field((), description="May be repeated.")


@dataclass(frozen=True)
class Counted:
    searches: int
    names: tuple[str, ...]


class CountSearches:
    about = "Count the searches."
    settings, result = Settings, Counted

    def run(self, store, settings, context):
        context.tell("searches", 0)
        queries = [outcome.search_queries for outcome in store.outcomes()]
        return Counted(sum(number >= settings.least for number in queries), settings.names)

    def sections(self, result):
        yield Heading("Searches <counted>")
        yield Figures((KeyFigure("searches", str(result.searches)),))


COUNT = CountSearches()


class CountAnew(CountSearches):
    result = Settings  # another class than that of what is stored

    def sections(self, result):
        raise ZeroDivisionError("no searches")


CHANGED, FAILING = CountAnew(), CountAnew()
FAILING.result = Counted


class Torn(Mean):
    def __init__(self, original):
        raise ZeroDivisionError("torn")
'''
ENTRIES = {
    "edgeflare.commands/greet": "greet", "edgeflare.commands/bench": "greet",
    "edgeflare.commands/stumble": "stumble", "edgeflare.commands/unusual": "unusual",
    "edgeflare.probes/mean": "Mean", "edgeflare.probes/gradient": "Mean",
    "edgeflare.strategies/asking": "Asking", "edgeflare.strategies/gradient": "Asking",
    "edgeflare.analyses/count": "COUNT",
}  # fmt: skip
BROKEN = {
    "edgeflare.commands/wrecked": "command",
    "edgeflare.analyses/wrecked": "ANALYSIS",
    "edgeflare.strategies/wrecked": "Strategy",
}
OLDER = """
from importlib.metadata import EntryPoints
from edgeflare._internal import plugins

plugins.entry_points = lambda **chosen: EntryPoints()
"""
BLOCKING = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"edgeflare_whitebox", "edgeflare_bench", "edgeflare_lab"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""


@dataclass(frozen=True)
class Stored:
    """What the analysis of the source has stored."""

    searches: int
    names: tuple[str, ...]


Run = Callable[..., "subprocess.CompletedProcess[str]"]


def runner(work: Path, site: Path, before: str = "") -> Run:
    """Return what runs a command in a folder, with a folder of distributions beside what is installed."""
    env = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "100", "NO_COLOR": "1"}
    code = f"{before}\nfrom edgeflare.cli import main\nmain()"

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, cwd=work, env=env, capture_output=True, text=True)

    return run


def listed(text: str) -> set[str]:
    """Return the commands that a help lists."""
    return set(re.findall(r"^│ (\w[\w-]*) ", text, re.MULTILINE))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_distribution(folder, "stranger", SOURCE, ENTRIES, "stranger")
    write_distribution(folder, "wreck", "import no_such_library", BROKEN, "wreck")
    return folder


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def run(site: Path, work: Path) -> Run:
    return runner(work, site)


@pytest.fixture(scope="module")
def campaign(run: Run) -> str:
    assert run("demo", "--seeds", "1", "--out", "c").returncode == 0
    return "c"


def test_commands_and_analyses_of_others_are_listed_and_a_broken_one_does_no_harm(run: Run) -> None:
    assert {"greet", "wrecked", "bench", "inspect", "run"} <= listed(run("--help").stdout)
    assert {"count", "coverage", "wrecked"} <= listed(run("analyse", "--help").stdout)
    greeted = run("greet", "Ada")
    assert (greeted.returncode, greeted.stdout) == (0, "good day, Ada\n")
    for command in (("wrecked",), ("analyse", "wrecked", "c")):
        ran = run(*command)
        assert ran.returncode == 2
        assert "of wreck 1.2" in ran.stderr
        assert "no_such_library" in ran.stderr
        assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "why"), [("stumble", "KeyError: 'boom'"), ("unusual", "Union")]
)
def test_a_command_that_fails_is_its_distributions(run: Run, command: str, why: str) -> None:
    failed = run(command)
    assert failed.returncode == 2
    assert "stranger 1.2" in failed.stderr
    assert why in failed.stderr


def test_a_built_in_name_means_the_built_in_one(run, site, monkeypatch) -> None:
    assert "suites" in listed(run("bench", "--help").stdout)
    monkeypatch.syspath_prepend(site)
    with pytest.raises(UsageError, match=r"'tries'.*constraint"):
        build_strategy("gradient", {"tries": 3})
    assert strategy_names().count("gradient") == 1


def test_a_strategy_asks_a_probe_of_its_own(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(site)
    demo = demo_config()
    result = search(
        original=demo.original.path,
        deployed=demo.deployed.path,
        seeds={"path": demo.seeds.path, "limit": 2},
        strategy="asking",
        options={"tries": 3},
        survey={"enabled": False},
    )
    with Store.open(result.folder) as store:
        outcomes = [outcome for outcome in store.outcomes() if outcome.search_queries]
        assert store.environment["numpy"]
    assert outcomes
    assert all(outcome.host_only_queries > 0 for outcome in outcomes)
    assert any("2.0" in (outcome.detail or "") for outcome in outcomes)


def test_an_installation_older_than_its_code_says_so(tmp_path, monkeypatch) -> None:
    failed = runner(tmp_path, tmp_path, OLDER)("bench", "suites")
    assert (failed.returncode, len(failed.stderr.splitlines())) == (2, 1)
    assert "install -e" in failed.stderr
    plugins.load.cache_clear()
    monkeypatch.setattr(plugins, "entry_points", lambda **_: EntryPoints())
    for use in (lambda: build_strategy("gradient", {}), lambda: priority_of("rarity")):
        with pytest.raises(UsageError, match="older than"):
            use()


@pytest.mark.parametrize("attribute", ["CHANGED", "FAILING"])
def test_a_stored_result_that_cant_be_shown_gives_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribute: str
) -> None:
    module = f"analysis_{attribute.lower()}"
    entries = {f"edgeflare.analyses/{attribute}": attribute}
    write_distribution(tmp_path / "site", module, SOURCE, entries, "stranger")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with Store.create(tmp_path / "c", {}) as store:
        store.add_result(attribute, Stored(3, ("a",)))
        (section,) = stored_sections(store, str)
    (block,) = section.blocks
    assert section.title == attribute
    assert re.match(f"the analysis '{attribute}' of stranger.*", block.text)
    assert "damaged" not in block.text


def test_a_probe_that_cant_be_made_is_a_plugins_error(tmp_path, monkeypatch) -> None:
    entries = {"edgeflare.probes/torn": "Torn"}
    write_distribution(tmp_path, "torn_probe", SOURCE, entries, "torn-probe")
    monkeypatch.syspath_prepend(tmp_path)
    with (
        closing(OriginalModel(demo_config().original.path, "onnx", {}, here=True)) as original,
        pytest.raises(UsageError, match=r"torn-probe 1\.2"),
    ):
        original.check_probe("torn")


@pytest.mark.extended
def test_an_analysis_has_flags_is_stored_and_shown(run: Run, work: Path, campaign: str) -> None:
    assert {"--least", "--name"} <= set(run("analyse", "count", "--help").stdout.split())
    wrong = run("analyse", "count", campaign, "--least", "-1")
    assert wrong.returncode == 2
    assert "at least 0" in wrong.stderr
    counted = run("analyse", "count", campaign, "--name", "a", "--name", "b", "--json")
    assert counted.returncode == 0, counted.stderr
    assert json.loads(counted.stdout) == {"searches": 1, "names": ["a", "b"]}
    assert "Searches <counted>" in run("show", campaign).stdout
    assert run("report", campaign).returncode == 0
    page = (work / campaign / "report.html").read_text(encoding="utf-8")
    assert '<h2 id="analysis-count-title">Searches &lt;counted&gt;</h2>' in page


@pytest.mark.extended
def test_the_core_works_without_the_other_packages(tmp_path: Path) -> None:
    run = runner(tmp_path, tmp_path, BLOCKING)
    assert {"run", "bench", "inspect", "worker"} <= listed(run("--help").stdout)
    assert run("demo", "--seeds", "1", "--out", "c").returncode == 0
    assert run("report", "c").returncode == 0
    for command in (("bench", "suites"), ("inspect", "--help")):
        failed = run(*command)
        assert failed.returncode == 2
        assert "ModuleNotFoundError" in failed.stderr
        assert len(failed.stderr.splitlines()) == 1
