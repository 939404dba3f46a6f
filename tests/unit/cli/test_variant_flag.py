"""``edgeflare run --variant`` and its like, and what the help says of the strategies."""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from edgeflare import CampaignConfig, UsageError
from edgeflare.cli.app import app
from edgeflare.cli.campaigns import config_of
from edgeflare.cli.options import typed
from edgeflare.strategies import build_strategy, strategy_names

MODELS = ["--original", "a.onnx", "--deployed", "b.tflite", "--seeds", "images"]


def config(*arguments: str) -> CampaignConfig:
    command = typer.main.get_command(app).commands["run"]
    given = command.make_context("run", list(arguments)).params
    campaign = given["campaign"]
    return config_of(None if campaign is None else Path(campaign), typed(given))


def test_a_variant_is_an_option_of_the_strategy() -> None:
    chosen = config(*MODELS, "--variant", "reference", "--option", "overflow=clip")
    assert chosen.search.options == {"variant": "reference", "overflow": "clip"}


@pytest.mark.parametrize(
    ("more", "strategy"),
    [
        ([], "boundary"),
        (["--variant", "text"], "dflare"),
        (["--variant", "text", "--strategy", "dflare-d"], "dflare-d"),
        (["--option", "variant=text"], "boundary"),
    ],
)
def test_a_variant_alone_means_dflare(more: list[str], strategy: str) -> None:
    assert config(*MODELS, *more).search.strategy == strategy


def test_without_the_flag_nothing_is_reported_of_a_variant() -> None:
    assert config(*MODELS).search.options == {}


def test_the_same_variant_said_twice_is_fine() -> None:
    chosen = config(*MODELS, "--variant", "text", "--option", "variant=text")
    assert chosen.search.options == {"variant": "text"}


def test_two_variants_are_refused() -> None:
    with pytest.raises(UsageError, match="--option variant=reference"):
        config(*MODELS, "--variant", "text", "--option", "variant=reference")


def test_the_flag_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(
        '[original]\npath = "o.onnx"\n[deployed]\npath = "d.onnx"\n[seeds]\npath = "s"\n'
        '[search.options]\nvariant = "text"\npool = "table-3"\n'
    )
    chosen = config(str(file), "--variant", "reference")
    assert chosen.search.options == {"variant": "reference", "pool": "table-3"}


SHORT_FORMS = [
    ("--crossing", "natural", "line", {"crossing": "natural"}),
    ("--device-budget", "7", "8", {"device_budget": 7}),
    ("--max-l2", "1.5", "2", {"max_l2": 1.5}),
    ("--max-linf", "30", "31", {"max_linf": 30}),
    ("--min-ssim", "0.9", "0.8", {"min_ssim": 0.9}),
]


@pytest.mark.parametrize(("flag", "said", "other", "options"), SHORT_FORMS)
def test_options_of_boundary_have_flags_of_their_own(
    flag: str, said: str, other: str, options: dict[str, object]
) -> None:
    (name,) = options
    assert config(*MODELS, flag, said).search.options == options
    assert config(*MODELS, flag, said, "--option", f"{name}={said}").search.options == options
    told = f"{flag} {said} and --option {name}={other} contradict each other; state one"
    with pytest.raises(UsageError, match=re.escape(told)):
        config(*MODELS, flag, said, "--option", f"{name}={other}")


def help_of_run() -> str:
    ran = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    return " ".join(ran.output.replace("│", " ").split())


def test_the_help_names_every_strategy() -> None:
    (told,) = re.findall(r"The search strategy: (.*?)\. ", help_of_run())
    for name in strategy_names():
        assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", told), name


@pytest.mark.parametrize("name", [name for name in strategy_names() if name != "none"])
def test_the_help_names_every_option_of_a_strategy(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        build_strategy(name, {"no such option": 1})
    options = str(refused.value).rpartition("its options are ")[2].split(", ")
    told = help_of_run().partition("For the strategy; may be repeated. ")[2]
    (mine,) = re.findall(rf"(?<![\w-]){re.escape(name)}(?:, dflare-\w)*: (.*?)\. ", told)
    assert len(options) > 1
    assert {option for option in options if f" {option}=" not in f" {mine}"} == set()
