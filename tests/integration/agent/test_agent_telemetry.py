"""What the agent tells of its device, with commands that stand in for a Raspberry Pi's and a phone's."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agent_process import AgentProcess, bare_environment
from stand_ins import stand_in

from edgeflare_agent.telemetry import Sensors
from edgeflare_agent.wire import Kind

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    bare = bare_environment()
    return {**bare, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{bare['PATH']}"}


def test_heartbeats_and_status_tell_why_a_device_is_slow(tmp_path, environment) -> None:
    stand_in(tmp_path / "bin", "vcgencmd", "echo throttled=0x50005")
    stand_in(tmp_path / "bin", "termux-battery-status", "echo '{\"percentage\": 42}'")
    with AgentProcess(tmp_path / "root", environment=environment) as agent:
        agent.start()
        status = agent.request(Kind.STATUS, {}).header
        pong = agent.ping()
    for told in (status, pong):
        assert told["throttled"] is True
        assert told["throttle_reasons"][:2] == ["under-voltage", "throttled"]
        assert {"under-voltage", "throttled"} <= set(told["throttled_since_boot"])
    assert Sensors.UNKNOWN.keys() < pong.keys()
    assert pong["rss_bytes"] > 1 << 20


def test_a_command_that_hangs_holds_up_no_heartbeat_and_does_not_outlive_the_agent(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    script = f"echo $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; exec sleep 600"
    stand_in(tmp_path / "bin", "vcgencmd", script)
    with AgentProcess(tmp_path / "root", environment=environment) as agent:
        agent.start()
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        assert "throttle_reasons" in agent.ping()  # it is answered though the command still runs
        agent.send(Kind.BYE, {})
        assert agent.process.wait() == 0
    pid = (tmp_path / "pid").read_text().strip()
    listed = ["ps", "-o", "stat=", "-p", pid]
    while (state := subprocess.run(listed, capture_output=True, text=True).stdout.strip()) != "":
        assert state.startswith(("Z", "S", "R", "D"))
        if state.startswith("Z"):  # killed; nobody here takes note of it
            return
        time.sleep(0.01)
