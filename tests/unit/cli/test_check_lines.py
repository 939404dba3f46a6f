"""How a check is printed, for people and for machines."""

import json

import pytest

from edgeflare.cli.display.devices import print_lines_as_json
from edgeflare.devices import CheckLine

LINES = [
    CheckLine("python", True, "3.11.2 [fine]", None),
    CheckLine("governor", True, "ondemand", "echo performance", noted=True),
    CheckLine("numpy", False, "missing", "pip install numpy"),
]


def test_machines_get_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines_as_json(LINES)
    told = json.loads(capsys.readouterr().out)
    assert told["ready"] is False
    assert told["lines"][1] == {
        "name": "governor",
        "ok": True,
        "state": "note",
        "detail": "ondemand",
        "fix": "echo performance",
    }
    assert [line["state"] for line in told["lines"]] == ["ok", "note", "fix"]


def test_notes_leave_a_device_ready(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines_as_json(LINES[:2])
    assert json.loads(capsys.readouterr().out)["ready"] is True
