"""The help of every command."""

import re
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from edgeflare import CampaignConfig
from edgeflare._internal.flags import flags_of
from edgeflare.campaign.settings.templates import STARTER
from edgeflare.cli.app import app

COMMANDS = {
    (): ["demo", "run", "resume", "status", "show", "export", "devices", "bench"],
    ("run",): ["--device", "--fleet", "--handover", "--patience", "--total-queries", "--original"],
    ("bench",): ["suites", "run", "resume", "show"],
    ("bench", "run"): [
        "--data", "--out", "--pair", "--strategy", "--seeds", "--repeats", "--device",
    ],
    ("resume",): ["--force", "--device", "--inventory", "--json"],
    ("status",): ["--watch", "--json"],
    ("devices",): ["list", "status", "check", "trust", "prune"],
    ("devices", "status"): ["--inventory", "--json"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_names_what_may_be_typed(command: tuple[str, ...]) -> None:
    ran = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert ran.exit_code == 0
    for word in COMMANDS[command]:
        assert word in ran.output
    assert max(len(line) for line in ran.output.splitlines()) <= 80


def test_every_command_and_option_says_what_it_does() -> None:
    group: Any = typer.main.get_command(app)
    context = typer.Context(group)
    groups = [
        group,
        *(group.get_command(context, name) for name in ("devices", "bench", "inspect")),
    ]
    commands = [
        one.get_command(context, name) for one in groups for name in one.list_commands(context)
    ]
    for command in commands:
        assert command.help or command.name == "devices"
        for parameter in command.get_params(typer.Context(command)):
            assert getattr(parameter, "help", None), f"{command.name} {parameter.name}"


def test_run_has_every_flag_of_the_configuration_and_the_starter_its_setting() -> None:
    settings = flags_of(CampaignConfig)
    command = typer.main.get_command(app).commands["run"]
    typed = {name for one in command.get_params(typer.Context(command)) for name in one.opts}
    assert {one.flag.name.partition("/")[0] for one in settings} <= typed
    stated = {place[-1] for one in settings if not one.flag.key for place in one.places}
    in_starter = set(re.findall(r"^(?:# )?(\w+) = ", STARTER, flags=re.MULTILINE))
    assert stated - in_starter == {"tolerance"}, "it goes with an oracle that is not the default"
