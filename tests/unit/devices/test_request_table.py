"""The request table against a plain model of it: order, window, and the clock of the oldest."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edgeflare.devices.request_table import Request, RequestTable
from edgeflare_agent.wire import Frame, Kind

WINDOW = 3
ALLOWANCE = 10.0


def make(id_: int) -> Request:
    return Request(id_, Kind.INFER, [], ALLOWANCE, lambda frame: frame)


class TableMachine(RuleBasedStateMachine):
    """The model: two lists of ids, and how long the agent has worked on the first."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.table = RequestTable(WINDOW, lambda: self.now)
        self.requests: dict[int, Request] = {}
        self.waiting: list[int] = []
        self.sent: list[int] = []
        self.worked = 0.0

    @rule()
    def add(self) -> None:
        request = make(len(self.requests))
        self.requests[request.id] = request
        self.table.add(request)
        self.waiting.append(request.id)

    @precondition(lambda self: self.waiting and len(self.sent) < WINDOW)
    @rule(write=st.booleans())
    def send(self, write: bool) -> None:
        id_ = self.waiting.pop(0)
        request = self.table.send_next()
        if self.requests[id_].future.cancelled():
            assert request is None
            return
        assert request is self.requests[id_]
        if not self.sent:
            self.worked = 0.0
        self.sent.append(id_)
        if write:
            self.table.written(request)

    @precondition(lambda self: self.sent)
    @rule()
    def finish_writing_the_first(self) -> None:
        request = self.requests[self.sent[0]]
        if request.written_at is None:
            self.table.written(request)
            self.worked = 0.0

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(self.sent))
        if id_ == self.sent[0]:
            self.worked = 0.0
        self.sent.remove(id_)
        assert self.table.take(id_) is self.requests[id_]

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
        assert self.table.can_send() == (bool(self.waiting) and len(self.sent) < WINDOW)
        late = None
        if self.sent and self.requests[self.sent[0]].written_at is not None:
            late = self.requests[self.sent[0]] if self.worked > ALLOWANCE else None
        assert self.table.overdue() is late


TestRequestTable = TableMachine.TestCase
TestRequestTable.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_reply_of_another_kind_is_refused() -> None:
    request = make(1)
    reply = Frame(Kind.RESULT, {"id": 1})
    assert request.result_of(reply) is reply
    with pytest.raises(ValueError, match="LOADED as reply to INFER"):
        request.result_of(Frame(Kind.LOADED, {"id": 1}))
