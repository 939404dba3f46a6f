import pytest
import typer

from edgeflare import CampaignConfig, UsageError
from edgeflare.cli.app import app
from edgeflare.cli.campaigns import config_of
from edgeflare.cli.options import typed

PAIR = ("--original", "a.onnx", "--deployed", "b.tflite", "--seeds", "seeds")


def stated(*arguments: str) -> CampaignConfig:
    command = typer.main.get_command(app).commands["run"]
    return config_of(None, typed(command.make_context("run", [*PAIR, *arguments]).params))


def outputs(*arguments: str) -> tuple[str, str]:
    config = stated(*arguments)
    return config.original.output, config.deployed.output


def test_an_output_stated_for_one_model_wins_over_that_for_both() -> None:
    assert outputs() == ("auto", "auto")
    assert outputs("--output", "logits") == ("logits", "logits")
    assert outputs("--deployed-output", "label") == ("auto", "label")
    assert outputs("--output", "logits", "--deployed-output", "label") == ("logits", "label")
    assert outputs("--original-output", "logits") == ("logits", "auto")


def test_an_output_is_named_for_both_models_or_for_one() -> None:
    def names(*arguments: str) -> tuple[str | None, str | None]:
        config = stated(*arguments)
        return config.original.output_name, config.deployed.output_name

    assert names() == (None, None)
    assert names("--output-name", "y") == ("y", "y")
    assert names("--output-name", "y", "--deployed-output-name", "z") == ("y", "z")
    assert names("--original-output-name", "y") == ("y", None)


def test_an_unknown_kind_of_output_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--deployed-output must"):
        stated("--deployed-output", "labels")
