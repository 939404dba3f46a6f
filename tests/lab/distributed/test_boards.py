"""A worker's devices: whose they are, and when they are given back."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeflare import UsageError
from edgeflare.devices import resolve_device
from edgeflare.errors import DeviceAwayError, DeviceBusyError, EdgeFlareError, StoreError
from edgeflare_lab.distributed import boards
from edgeflare_lab.distributed.boards import BoardHost
from edgeflare_lab.distributed.requests import Opened, Opening, Shard

FIRST = Opening("1", "first", {}, {}, None)
SECOND = Opening("2", "second", {}, {}, None)


class Boards:
    """What the host opens in these tests; it notes what it is asked."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.may_open = threading.Event()
        self.may_open.set()
        self.begun = threading.Event()
        self.problem: EdgeFlareError | None = None
        self.store_error: EdgeFlareError | None = None
        self.waits_ended = 0

    def __call__(self, opening: Opening, devices: object, worker: str) -> "_Open":
        self.begun.set()
        assert self.may_open.wait(20)
        self.log.append(f"open {opening.name}")
        return _Open(self, opening)

    def stop_waiting(self) -> None:
        self.waits_ended += 1
        self.may_open.set()


class _Open:
    def __init__(self, made: Boards, opening: Opening) -> None:
        self._made = made
        self.opening = opening
        self.used = time.monotonic()
        self.reporter = boards._ShardReporter()
        self.opened = Opened(problem=made.problem)
        self.fleet = self

    def status(self) -> tuple[()]:
        return ()

    def prepare(self, place: str) -> None:
        if error := self.opened.problem or self._made.store_error:
            raise error

    def do(self, shard: Shard) -> str:
        self.reporter.notice(f"of {self.opening.name}")
        return f"{self.opening.name} {shard.stage}"

    def close(self) -> None:
        self._made.log.append(f"close {self.opening.name}")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Boards:
    found = Boards()
    monkeypatch.setattr(boards, "_OpenCampaign", found)
    monkeypatch.setattr(boards, "stop_waiting_for_places", found.stop_waiting)
    return found


@pytest.fixture
def host(made: Boards) -> Iterator[BoardHost]:
    found = BoardHost("a", [resolve_device("local", {})])
    yield found
    found.end()


def never() -> bool:
    return False


def shard(opening: Opening) -> Shard:
    return Shard(opening, "place", "search", ["1"])


def test_a_shard_of_another_campaign_leaves_devices_and_notices_alone(host, made) -> None:
    host.open(FIRST, never)
    host._open.reporter.notice("kept")
    done = host.do(shard(SECOND), never)
    assert done.is_away
    assert isinstance(done.problem, DeviceBusyError)
    assert not done.notices
    assert "campaign first" in str(done.problem)
    assert host.open(SECOND, never) == Opened(instead="first")
    host.close(SECOND.campaign)
    assert made.log == ["open first"]
    done = host.do(shard(FIRST), never)
    assert done.value == "first search"
    assert [text for text, _ in done.notices] == ["kept", "of first"]


@pytest.mark.parametrize("how", ["close", "end"])
def test_devices_that_are_being_opened_are_given_back_when_it_stops(host, made, how) -> None:
    made.may_open.clear()  # as for a place of labgrid that another one has
    errors: list[BaseException] = []

    def open_first() -> None:
        try:
            host.open(FIRST, never)
        except DeviceAwayError as error:
            errors.append(error)

    thread = threading.Thread(target=open_first)
    thread.start()
    assert made.begun.wait(20)
    if how == "close":
        host.close(SECOND.campaign)
        assert not made.may_open.is_set()
        host.close(FIRST.campaign)
    else:
        host.end()
    thread.join()
    assert "was stopped" in str(errors[0])
    assert made.log == ["open first", "close first"]
    if how == "close":  # and may be opened again
        host.open(FIRST, never)
    else:
        assert host.do(shard(FIRST), never).is_away


def test_what_is_no_longer_wanted_is_not_opened(host: BoardHost, made: Boards) -> None:
    for stopped in ([True], [False, True]):
        answers = iter([*stopped, *[True] * 9])
        with pytest.raises(DeviceAwayError, match="was stopped"):
            host.open(FIRST, lambda answers=answers: next(answers))
    assert made.log == ["open first", "close first"]
    assert host.offer().campaign == ""


@pytest.mark.parametrize("error", [StoreError("no keys"), UsageError("no psycopg")])
def test_a_store_that_cannot_be_opened_here_may_be_elsewhere(host, made, error) -> None:
    made.store_error = error
    done = host.do(shard(FIRST), never)
    assert done.is_away
    assert type(done.problem) is type(error)
    assert made.log == ["open first", "close first"]


def test_models_that_do_not_fit_are_the_problem_of_this_worker(host, made) -> None:
    made.problem = UsageError("other classes")
    assert host.open(FIRST, never).problem is made.problem
    done = host.do(shard(FIRST), never)
    assert done.is_away
    assert str(done.problem) == "other classes"


def test_devices_without_a_shard_for_long_are_given_back_and_opened_again(made: Boards) -> None:
    host = BoardHost("a", [resolve_device("local", {})], idle_s=0.05)
    host.open(FIRST, never)
    deadline = time.monotonic() + 20
    while host.offer().campaign and time.monotonic() < deadline:
        time.sleep(0.01)
    assert made.log == ["open first", "close first"]
    assert host.do(shard(FIRST), never).value == "first search"
    assert made.log[:3] == ["open first", "close first", "open first"]
    host.end()
    assert made.log[-1] == "close first"


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, monkeypatch) -> None:
    def refuse(file: Path) -> str:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(boards, "file_sha256", refuse)
    with pytest.raises(UsageError, match=r"\(Permission denied"):
        boards._sha256(tmp_path / "model", "the worker a")
