"""What is typed after ``edgeflare run`` -> the campaign's configuration."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from edgeflare import CampaignConfig, UsageError
from edgeflare.campaign.settings.flags import Typed
from edgeflare.cli.app import app
from edgeflare.cli.campaigns import config_of
from edgeflare.cli.options import settings_from, typed
from edgeflare.nightly.comparison import BaseSettings

MODELS = ["--original", "a.onnx", "--deployed", "b.tflite", "--seeds", "images"]


def parsed(*arguments: str) -> tuple[str | None, Typed]:
    """Parse the arguments as the command line does: the campaign file, and what the flags say."""
    command = typer.main.get_command(app).commands["run"]
    given = command.make_context("run", list(arguments)).params
    return given["campaign"], typed(given)


def config(*arguments: str) -> CampaignConfig:
    campaign, stated = parsed(*arguments)
    return config_of(None if campaign is None else Path(campaign), stated)


def test_models_and_seeds_are_enough_and_all_else_has_a_default() -> None:
    chosen = config(*MODELS)
    assert chosen.devices == ("local",)
    assert chosen.concurrency is None
    assert chosen == CampaignConfig(
        original={"path": "a.onnx"}, deployed={"path": "b.tflite"}, seeds={"path": "images"}
    )


def test_a_fleet() -> None:
    chosen = config(
        *MODELS,
        *("--device", "pi-1", "--device", "ssh://user@host:2222", "--device", "pi-1"),
        *("--fleet", "replicate", "--allow-mixed"),
        *("--device-queries", "1000", "--total-queries", "5000"),
        *("--handover", "1.5", "--patience", "0", "--concurrency", "7"),
    )
    assert chosen.devices == ("pi-1", "ssh://user@host:2222", "pi-1")
    assert chosen.fleet.model_dump() == {
        "mode": "replicate", "allow_mixed": True, "device_queries": 1000, "total_queries": 5000,
        "handover_s": 1.5, "patience_s": 0.0,
    }  # fmt: skip
    assert chosen.concurrency == 7


def test_both_models_inputs_and_what_is_said_of_one() -> None:
    chosen = config(
        *MODELS,
        *("--input", "scale=1/255", "--input", "color=BGR", "--deployed-input", "color=RGB"),
        *("--original-input", "layout=CHW", "--output", "logits", "--runtime-option", "threads=2"),
        *("--option", "delta=1e-3", "--operator", "average", "--operator", "median-blur"),
        *("--max-queries", "0", "--timeout", "9", "--seed", "4", "--limit", "3"),
    )
    assert (chosen.original.input.color, chosen.deployed.input.color) == ("BGR", "RGB")
    assert (chosen.original.input.layout, chosen.deployed.input.layout) == ("CHW", None)
    assert chosen.original.input.scale == chosen.deployed.input.scale
    assert chosen.original.output == chosen.deployed.output == "logits"
    assert chosen.deployed.options == {"threads": 2}
    assert chosen.search.options == {"delta": 0.001}
    assert chosen.search.operators == ("average", "median-blur")
    assert (chosen.search.max_queries, chosen.search.timeout_s, chosen.search.seed) == (0, 9, 4)
    assert chosen.seeds.limit == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('providers=["AzureExecutionProvider"]', ["AzureExecutionProvider"]),
        ('providers=["A", "B"]', ["A", "B"]),
        ("providers=A,B", ["A", "B"]),
        ('provider_options={"A": {"b": 1, "c": true}}', {"A": {"b": 1, "c": True}}),
        ("providers=[A, B]", "[A, B]"),
        ("providers=" + 100_000 * "[", 100_000 * "["),
        ("providers=a,,b", ["a", "", "b"]),
    ],
)
def test_a_runtime_option_may_be_a_list_or_an_object(text: str, value: object) -> None:
    chosen = config(*MODELS, "--runtime-option", text)
    assert list(chosen.deployed.options.values()) == [value]


def test_a_control_model_needs_no_other_flag() -> None:
    chosen = config(*MODELS, "--control-model", "float.tflite")
    assert chosen.control
    assert chosen.control_model == Path("float.tflite").absolute()


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(
        'devices = ["pi-1", "pi-2"]\n[original]\npath = "o.onnx"\n[deployed]\npath = "d.onnx"\n'
        '[seeds]\npath = "s"\n[fleet]\nmode = "replicate"\nhandover_s = 5\n'
    )
    chosen = config(str(file), "--device", "pi-9", "--handover", "7")
    assert chosen.devices == ("pi-9",)
    assert (chosen.fleet.mode, chosen.fleet.handover_s) == ("replicate", 7.0)
    assert chosen.original.path == tmp_path / "o.onnx"
    assert config(str(file)).devices == ("pi-1", "pi-2")


def test_what_is_wrong_in_the_file_is_named_as_it_stands_there(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(
        '[original]\npath = "o.onnx"\n[deployed]\npath = "d.onnx"\n[seeds]\npath = "s"\n[search]\nseed = "x"\n'
    )
    with pytest.raises(UsageError) as caught:
        config(str(file), "--fleet", "share")
    assert str(caught.value).startswith(f"{file}: ")
    assert "search.seed must be" in str(caught.value)
    assert "--fleet must be" in str(caught.value)


def test_what_was_not_typed_is_left_to_the_file() -> None:
    assert parsed("campaign.toml")[1] == Typed({}, {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--deployed", "b.tflite"], "--original, --seeds"),
        ([*MODELS, "--fleet", "share"], "^--fleet must"),
        ([*MODELS, "--input", "scale"], "--input 'scale'"),
        ([*MODELS, "--deployed-input", "=3"], "--deployed-input '=3'"),
        ([*MODELS, "--runtime-option", "x="], "--runtime-option 'x='"),
        ([*MODELS, "--python", ""], "^--python"),
        ([*MODELS, "--input", "colour=RGB"], "setting --input"),
        ([*MODELS, "--input", "mean=1", "--deployed-input", "mean=x"], "^--deployed-input mean"),
    ],
)
def test_what_is_wrong_is_named(arguments: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        config(*arguments)


@pytest.mark.parametrize("value", ["1", "-0.1", "nan"])
def test_a_margin_floor_that_is_none_is_refused_once(value: str) -> None:
    ran = CliRunner().invoke(
        app, ["run", *MODELS, "--margin-floor", value], env={"COLUMNS": "200", "NO_COLOR": "1"}
    )
    assert ran.exit_code == 2
    assert f"{float(value):g}" in ran.output
    assert ran.output.count("floor") == 1


@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("--max-l2", "0", "above 0"),
        ("--survey-queries", "0", "least 1"),
        ("--max-linf", "0", "least 1"),
    ],
)
def test_a_distance_that_nothing_keeps_is_refused(flag: str, value: str, told: str) -> None:
    ran = CliRunner().invoke(app, ["run", flag, value], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert ran.exit_code == 2
    assert told in ran.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--max-queries", "half"],
        ["run", "--timeout", "half"],
        ["report", "c", "--embed-mb", "half"],
        ["analyse", "importance", "c", "--units", "half"],
    ],
)
def test_a_word_that_is_no_number_is_named_with_its_flag(arguments: list[str]) -> None:
    ran = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert ran.exit_code == 2
    assert arguments[-2] in ran.output
    assert "half" in ran.output


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--family", "nois"], "you mean 'noise'?"),
        (["--reference", "int9"], "mean --reference int8?"),
        (["--no-survey", "--family", "gain"], "leave out --no-survey"),
        (["--no-survey", "--sure", ".2"], "leave out --no-survey"),
    ],
)
def test_a_survey_that_cannot_be_is_refused_before_anything_runs(flags, words, tmp_path) -> None:
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).touch()
    pair = ["--original", f"{tmp_path}/a.onnx", "--deployed", f"{tmp_path}/b.onnx"]
    ran = CliRunner().invoke(app, ["run", *pair, "--seeds", str(tmp_path), *flags])
    assert ran.exit_code == 2
    assert words in ran.output


def test_a_required_flag_that_is_missing_is_told_by_its_name() -> None:
    with pytest.raises(UsageError, match=r"^--base is missing"):
        settings_from(BaseSettings, {}, "analysis regression")
