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


def test_the_same_variant_said_twice_is_fine() -> None:
    chosen = config(*MODELS, "--variant", "text", "--option", "variant=text")
    assert chosen.search.options == {"variant": "text"}


def test_two_variants_are_refused() -> None:
    with pytest.raises(UsageError, match="--option variant=reference"):
        config(*MODELS, "--variant", "text", "--option", "variant=reference")


SHORT_FORMS = [
    ("--crossing", "natural", "line", {"crossing": "natural"}),
    ("--device-budget", "7", "8", {"device_budget": 7}),
    ("--max-l2", "1.5", "2", {"max_l2": 1.5}),
    ("--max-linf", "30", "31", {"max_linf": 30}),
    ("--min-ssim", "0.9", "0.8", {"min_ssim": 0.9}),
]


@pytest.mark.parametrize(("flag", "said", "other", "options"), SHORT_FORMS)
def test_options_of_boundary_have_flags_of_their_own(flag, said, other, options) -> None:
    (name,) = options
    assert config(*MODELS, flag, said).search.options == options
    assert config(*MODELS, flag, said, "--option", f"{name}={said}").search.options == options
    told = f"{flag} {said} and --option {name}={other} contradict each other; state one"
    with pytest.raises(UsageError, match=re.escape(told)):
        config(*MODELS, flag, said, "--option", f"{name}={other}")


def help_of_run() -> str:
    ran = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    return " ".join(ran.output.replace("│", " ").split())


def test_the_help_names_every_option_of_a_strategy() -> None:
    told = help_of_run().partition("For the strategy; may be repeated. ")[2]
    for name in set(strategy_names()) - {"none"}:
        with pytest.raises(UsageError) as refused:
            build_strategy(name, {"no such option": 1})
        options = str(refused.value).rpartition("its options are ")[2].split(", ")
        (mine,) = re.findall(rf"(?<![\w-]){re.escape(name)}(?:, dflare-\w)*: (.*?)\. ", told)
        assert len(options) > 1
        assert {option for option in options if f" {option}=" not in f" {mine}"} == set()
