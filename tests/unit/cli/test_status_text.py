"""``status`` of campaigns in every state, in terminals of any width."""

import dataclasses
from datetime import datetime, timezone

import pytest
from fake_sessions import AWAY, HOT, PI
from shown_numbers import numbers

from edgeflare.campaign import CampaignStatus
from edgeflare.cli.display.status import print_status, status_text

NOW = datetime.now(timezone.utc)
RUNNING = CampaignStatus(
    folder="campaigns/my run", state="running", stage="search", detail="dflare on pi-4", done=250,
    total=1000, found=240, searched=248, queries=61234, devices=(PI, HOT, AWAY), message="",
    pid=4711, host="desk", started_at="2026-01-02T03:04:05+00:00", updated_at=NOW.isoformat(),
)  # fmt: skip


def lines(status, width=80):
    return status_text(status, width, NOW).plain.splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_running_campaign(width):
    shown = lines(RUNNING, width)
    assert (
        numbers("\n".join(shown[:4]))
        == "250 1000 25.0 240 248 96.8 61234 4711 2026 01 02 03 04 05 00 00"
    )
    assert [line.split()[0] for line in shown[4:]] == ["device", "pi-4", "…168.1.77:2222", "jetson"]
    assert max(map(len, shown[4:])) <= width


@pytest.mark.parametrize("state", ["interrupted", "paused", "failed"])
def test_a_campaign_that_stopped_says_why_and_how_to_go_on(state):
    shown = lines(dataclasses.replace(RUNNING, state=state, message="no device was left"))
    assert shown[:2] == [f"campaigns/my run: {state}", "no device was left"]
    assert "resume 'campaigns/my run'" in shown[-1]
    assert not any("pi-4" in line for line in shown)


def test_one_that_has_only_started():
    begun = dataclasses.replace(
        RUNNING, stage="", detail="", done=0, total=0, found=0, searched=0, queries=0, devices=()
    )
    assert lines(begun)[1] == "nothing done yet"


def test_as_json(capsys):
    import json

    print_status(RUNNING, True)
    data = json.loads(capsys.readouterr().out)
    assert (data["state"], data["done"], data["devices"][0]["name"]) == ("running", 250, "pi-4")
    assert data["devices"][2]["state"] == "away"
