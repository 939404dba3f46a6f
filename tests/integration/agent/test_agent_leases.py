"""Two agents on one device: who may use it, and for how long."""

import fcntl
import json
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from agent_process import AgentProcess, bare_environment
from small_models import dense_onnx

from edgeflare_agent import leases
from edgeflare_agent.errors import AgentError, BusyError
from edgeflare_agent.leases import Leases
from edgeflare_agent.wire import Frame, Kind


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[AgentProcess, AgentProcess]]:
    """Two agents on one root."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(AgentProcess(tmp_path)) for _ in range(2))
        yield first, second


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for an agent that may be about to end."""
    monkeypatch.setattr(leases, "_EXIT_S", 0.0)


def assert_busy(answer: Frame, about: str) -> None:
    assert (answer.kind, answer.header.get("code")) == (Kind.ERROR, "busy"), answer
    assert f"{about}, since less" in answer.header["message"]


def assert_taken(answer: Frame) -> None:
    assert answer.kind is Kind.LEASED, answer


def held(agent: AgentProcess) -> list[dict[str, object]]:
    state = agent.request(Kind.STATUS, {})
    assert state.kind is Kind.STATE
    return list(state.header["leases"])


def test_another_campaign_is_refused_and_told_who_holds_the_device(pair) -> None:
    first, second = pair
    assert_taken(first.lease("night", about="campaign night on laptop"))
    assert_busy(second.lease("day"), "campaign night on laptop")
    assert first.ping()["served"] == 0  # it lives
    [lease] = held(second)
    assert lease.pop("since_s") >= 0
    assert lease == {
        "holder": "night",
        "session": "first",
        "about": "campaign night on laptop",
        "share": False,
        "pid": first.process.pid,
    }


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("mine", "yours"), [(True, False), (False, True)])
def test_one_that_does_not_share_keeps_the_other_out(tmp_path, mine, yours) -> None:
    Leases(str(tmp_path)).take("night", "s", "night", share=mine)
    with pytest.raises(BusyError, match="by night"):
        Leases(str(tmp_path)).take("day", "s", "day", share=yours)


def test_campaigns_that_both_share_use_it_together(pair: tuple[AgentProcess, AgentProcess]) -> None:
    first, second = pair
    assert_taken(first.lease("night", share=True))
    assert_taken(second.lease("day", share=True))
    assert [lease["holder"] for lease in held(first)] == ["night", "day"]


def test_one_campaign_may_have_several_agents(pair: tuple[AgentProcess, AgentProcess]) -> None:
    first, second = pair
    assert_taken(first.lease("night", "first"))
    assert_taken(second.lease("night", "second"))
    assert {lease["pid"] for lease in held(first)} == {agent.process.pid for agent in pair}


def test_a_new_agent_of_the_same_session_ends_the_old_one(pair) -> None:
    first, second = pair
    assert_taken(first.lease("night"))
    assert_taken(second.lease("night"))
    assert first.process.wait() == -signal.SIGTERM
    assert [lease["pid"] for lease in held(second)] == [second.process.pid]


def test_an_old_agent_that_does_not_want_to_end_is_killed(tmp_path: Path) -> None:
    package = tmp_path / "shim" / "onnxruntime"
    package.mkdir(parents=True)
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nraise LookupError\n"
    (package / "__init__.py").write_text(stubborn)
    environment = {**bare_environment(), "PYTHONPATH": str(package.parent)}
    with AgentProcess(tmp_path, environment=environment) as first, AgentProcess(tmp_path) as second:
        first.load(dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1]), "onnx")
        assert_taken(first.lease("night"))
        assert_taken(second.lease("night"))
        assert first.process.wait() == -signal.SIGKILL


@pytest.mark.extended
def test_no_agent_is_ended_for_one_that_is_refused(tmp_path: Path) -> None:
    with ExitStack() as stack:
        mine, other, late = (stack.enter_context(AgentProcess(tmp_path)) for _ in range(3))
        assert_taken(mine.lease("night", share=True))
        assert_taken(other.lease("day", about="day", share=True))
        assert_busy(late.lease("night", share=False), "day")
        assert {lease["pid"] for lease in held(late)} == {mine.process.pid, other.process.pid}


def test_asking_again_replaces_the_agents_own_lease(pair, tmp_path) -> None:
    first, second = pair
    for holder in ("night", "night", "day"):
        assert_taken(first.lease(holder, about=holder))
    assert [lease["about"] for lease in held(first)] == ["day"]
    assert len(list((tmp_path / "leases").glob("*.json"))) == 1
    assert_taken(second.lease("day", "another"))


def test_a_lease_ends_at_once_when_its_agent_is_killed(pair, tmp_path) -> None:
    first, second = pair
    assert_taken(first.lease("night"))
    first.process.kill()
    first.process.wait()
    assert held(second) == []
    assert list((tmp_path / "leases").glob("*.json")) == []
    assert_taken(second.lease("day"))


@pytest.mark.parametrize("how", ["bye", "end of stream", "silence", "garbage"])
def test_an_agent_that_leaves_lets_go_and_leaves_no_file(tmp_path: Path, how: str) -> None:
    with AgentProcess(tmp_path) as agent:
        assert_taken(agent.lease("night"))
        assert len(list((tmp_path / "leases").glob("*.json"))) == 1
        if how == "bye":
            agent.send(Kind.BYE, {})
        elif how == "end of stream":
            agent.process.stdin.close()
        elif how == "silence":
            agent.start(heartbeat_s=0.2)
        else:
            agent.write(b"garbage that is no frame at all")
        agent.ended()
        assert list((tmp_path / "leases").glob("*.json")) == []


def test_nothing_is_asked_of_a_device_that_never_had_a_lease(tmp_path: Path) -> None:
    with AgentProcess(tmp_path) as agent:
        assert held(agent) == []
        assert not (tmp_path / "leases").exists()


def test_files_that_nobody_holds_are_stale(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    folder.mkdir()
    lease = {"holder": "old", "session": "s", "about": "", "share": False, "pid": 1, "since": 0}
    (folder / "old.json").write_text(json.dumps(lease))
    (folder / "torn.json").write_text("{")
    with AgentProcess(tmp_path) as agent:
        assert_taken(agent.lease("night"))
        assert [lease["holder"] for lease in held(agent)] == ["night"]
    assert not (folder / "old.json").exists()
    assert not (folder / "torn.json").exists()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"holder": "night"}',
        '{"holder": "night", "session": "first", "about": "", "share": false, "pid": -1, "since": 0}',
        '{"holder": "night", "session": "first", "about": "", "share": false, "pid": 0, "since": 0}',
    ],
)
def test_a_lease_that_makes_no_sense_is_held_and_its_process_left_alone(tmp_path, content) -> None:
    folder = tmp_path / "leases"
    folder.mkdir()
    with (folder / "odd.json").open("w") as file:
        file.write(content)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BusyError, match="program that"):
            Leases(str(tmp_path)).take("night", "s", "night", share=False)


def test_a_lease_without_a_name_is_refused(agent: AgentProcess) -> None:
    for header in (
        {"holder": "h", "session": "s", "about": "a"},
        {"holder": "h", "session": "s", "about": "a", "share": 1},
        {"holder": "", "session": "s", "about": "a", "share": True},
        {"holder": "h", "session": None, "about": "a", "share": True},
        {"holder": "h", "session": "s", "about": ["a"], "share": True},
    ):
        answer = agent.request(Kind.LEASE, header)
        assert answer.header["code"] == "bad-request"
        assert "names holder, session" in answer.header["message"]


def test_of_agents_that_ask_at_once_one_gets_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        agents = [stack.enter_context(AgentProcess(tmp_path)) for _ in range(4)]
        header = {"id": 1, "session": "s", "about": "the first", "share": False}
        for number, agent in enumerate(agents):
            agent.send(Kind.LEASE, {**header, "holder": f"campaign {number}"})
        answers = [agent.receive() for agent in agents]
        assert sorted(answer.kind for answer in answers) == [Kind.ERROR] * 3 + [Kind.LEASED]


def test_an_agent_that_is_just_leaving_is_waited_for(tmp_path: Path) -> None:
    header = {"id": 1, "session": "s", "about": "somebody", "share": False}
    with AgentProcess(tmp_path) as second:
        with AgentProcess(tmp_path) as first:
            first.send(Kind.LEASE, {**header, "holder": "first"})
            assert_taken(first.receive())
            second.send(Kind.LEASE, {**header, "holder": "second"})
            while second.ping()["waiting"]:
                time.sleep(0.01)
        assert_taken(second.receive())


@pytest.mark.usefixtures("at_once")
def test_how_long_it_has_been_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = leases._uptime_s()
    Leases(str(tmp_path)).take("night", "s", "campaign night", share=False)
    for seconds, words in (
        (61, "1 minute"),
        (12 * 60 + 5, "12 minutes"),
        (-5, "less than a minute"),
    ):
        monkeypatch.setattr(leases, "_uptime_s", lambda now=began + seconds: now)
        sentence = f"in use by campaign night, since {words}"
        with pytest.raises(BusyError, match=f"^{re.escape(sentence)}$"):
            Leases(str(tmp_path)).take("day", "s", "day", share=False)


def test_an_agent_that_asks_for_ever_does_not_keep_the_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_LOCK_WAIT_S", 0.1)
    with Leases(str(tmp_path))._locked(), pytest.raises(BusyError, match="try again"):
        Leases(str(tmp_path)).take("day", "s", "day", share=False)


def test_a_heartbeat_is_answered_while_a_lease_is_waited_for(agent: AgentProcess) -> None:
    with Leases(str(agent.root))._locked():
        agent.send(
            Kind.LEASE, {"id": 1, "holder": "h", "session": "s", "about": "a", "share": True}
        )
        while agent.ping()["waiting"]:
            time.sleep(0.01)
        assert agent.ping()["busy_s"] > 0
    assert_taken(agent.receive())


def test_a_folder_that_can_not_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "leases").write_text("a file")
    with pytest.raises(AgentError, match=f"{tmp_path}/leases: File"):
        Leases(str(tmp_path)).take("day", "s", "day", share=False)


def test_where_there_are_no_locks_there_are_no_leases(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(leases, "fcntl", None)
    first, second = Leases(str(tmp_path)), Leases(str(tmp_path))
    first.take("night", "s", "night", share=False)
    second.take("day", "s", "day", share=False)
    assert second.held() == []
