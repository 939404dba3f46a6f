"""The help of every command."""

import pytest
import typer
from typer.testing import CliRunner

from edgeflare.cli.app import app

COMMANDS = {
    (): ["demo", "run", "resume", "status", "show", "export", "devices", "bench"],
    ("run",): ["--device", "--fleet", "--handover", "--patience", "--total-queries", "--original"],
    ("bench",): ["suites", "run", "resume", "show"],
    ("bench", "run"): [
        "--data",
        "--out",
        "--pair",
        "--strategy",
        "--seeds",
        "--repeats",
        "--device",
    ],
    ("resume",): ["--force", "--device", "--inventory", "--json"],
    ("status",): ["--watch", "--json"],
    ("devices",): ["list", "status", "check", "trust", "prune"],
    ("devices", "status"): ["--inventory", "--json"],
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_names_what_may_be_typed(command: tuple[str, ...]) -> None:
    ran = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert ran.exit_code == 0
    for word in COMMANDS[command]:
        assert word in ran.output
    assert max(len(line) for line in ran.output.splitlines()) <= 80


def test_every_command_and_option_says_what_it_does() -> None:
    group = typer.main.get_command(app)
    groups = (group, group.commands["devices"], group.commands["bench"])
    commands = [command for one in groups for command in one.commands.values()]
    for command in commands:
        assert command.help or command.name == "devices"
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{command.name} {parameter.name}"
