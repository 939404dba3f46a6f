"""The request table against a plain model of it: order, window, and the clock of the oldest."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edgeflare.devices.session.flow_control import AdaptiveWindow
from edgeflare.devices.session.requests import Request, RequestTable
from edgeflare_agent.wire import Kind

MOST_BYTES = 10
TOGETHER = 4
ALLOWANCE = 10.0


def make(id_: int, size: int = 0) -> Request:
    return Request(id_, Kind.INFER, [bytes(size)], size, ALLOWANCE, lambda frame: frame)


class TableMachine(RuleBasedStateMachine):
    """The model: two lists of ids, and how long the agent has worked on the first."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.window = 3
        self.room = AdaptiveWindow(self.window)
        self.room.most_bytes = MOST_BYTES
        self.table = RequestTable(self.room, lambda: self.now)
        self.requests: dict[int, Request] = {}
        self.waiting: list[int] = []
        self.sent: list[int] = []
        self.answered: list[int] = []
        self.worked = 0.0

    def has_room(self) -> bool:
        if not self.waiting or len(self.sent) >= self.window:
            return False
        ids = [*self.sent, self.waiting[0]]
        return not self.sent or sum(self.requests[id_].size for id_ in ids) <= MOST_BYTES

    @rule(size=st.integers(0, 12))
    def add(self, size: int) -> None:
        request = make(len(self.requests), size)
        self.requests[request.id] = request
        self.table.add(request)
        self.waiting.append(request.id)

    @rule(window=st.integers(1, 6))
    def change_the_window(self, window: int) -> None:
        self.window = self.room.size = window

    @rule(write=st.booleans())
    def send(self, write: bool) -> None:
        going: list[Request] = []
        while self.has_room():
            request = self.requests[self.waiting[0]]
            if going and sum(one.size for one in [*going, request]) > TOGETHER:
                break
            self.waiting.pop(0)
            if request.future.cancelled():
                continue
            if not self.sent:
                self.worked = 0.0
            self.sent.append(request.id)
            going.append(request)
        assert self.table.send_next(TOGETHER) == going
        for request in going if write else []:
            request.written_at = self.now

    @precondition(lambda self: self.sent)
    @rule()
    def finish_writing_the_first(self) -> None:
        request = self.requests[self.sent[0]]
        if request.written_at is None:
            request.written_at = self.now
            self.worked = 0.0

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(self.sent))
        if id_ == self.sent[0]:
            self.worked = 0.0
        self.sent.remove(id_)
        self.answered.append(id_)
        assert self.table.find(id_) is self.requests[id_]
        assert self.table.take(self.requests[id_])

    @precondition(lambda self: self.answered)
    @rule(data=st.data())
    def answer_again(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(self.answered))
        assert self.table.find(id_) is None
        assert not self.table.take(self.requests[id_])

    @rule(beyond=st.integers(0, 3))
    def answer_what_was_never_sent(self, beyond: int) -> None:
        for id_ in [*self.waiting, len(self.requests) + beyond, -1]:
            with pytest.raises(KeyError):
                self.table.find(id_)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        assert self.requests[data.draw(st.sampled_from(self.waiting))].future.cancel()

    @rule(seconds=st.integers(1, 11))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        self.worked += seconds

    @rule()
    def drain(self) -> None:
        left = [self.requests[id_] for id_ in self.sent + self.waiting]
        assert self.table.drain() == [one for one in left if not one.future.cancelled()]
        self.sent, self.waiting = [], []

    @invariant()
    def counts_and_deadline_are_the_models(self) -> None:
        assert (self.table.in_flight, self.table.queued) == (len(self.sent), len(self.waiting))
        assert self.table.can_send() == self.has_room()
        late = None
        if self.sent:
            late = self.requests[self.sent[0]] if self.worked > ALLOWANCE else None
        assert self.table.overdue(last_write_at=0.0) is late


TestRequestTable = TableMachine.TestCase
TestRequestTable.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_cancelled_request_takes_no_room_among_those_sent_together() -> None:
    table = RequestTable(AdaptiveWindow(3))
    cancelled, first, second = make(0, size=2), make(1), make(2, size=3)
    for request in (cancelled, first, second):
        table.add(request)
    assert cancelled.future.cancel()
    assert table.send_next(TOGETHER) == [first, second]


def test_an_agent_that_reads_a_little_now_and_then_is_overdue_too() -> None:
    now = 0.0
    table = RequestTable(AdaptiveWindow(1), lambda: now)
    table.add(make(1, 1 << 18))
    (request,) = table.send_next()
    now = 25.9  # ten seconds to answer, and sixteen for 256 KiB
    assert table.overdue(last_write_at=now) is None
    now = 26.1
    assert table.overdue(last_write_at=now) is request
