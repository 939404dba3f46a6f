"""A reconnecting session against a plain model: requests settled once, rightly and in order."""

import random
from collections.abc import Callable
from concurrent.futures import Future

from fake_sessions import SPEC, FakeSession, Steps, sample
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edgeflare.devices import DeviceState, Reply
from edgeflare.devices.session.pending import MAX_DEATHS
from edgeflare.devices.session.reconnecting import ReconnectingSession
from edgeflare.errors import (
    AgentCrashedError,
    AuthenticationError,
    DeviceAwayError,
    DeviceBusyError,
    DeviceChangedError,
    DeviceError,
    DeviceTimeoutError,
    EdgeFlareError,
    HostKeyError,
    InferenceFailedError,
    ModelError,
    UnreachableError,
    UsageError,
)

DIED = AgentCrashedError("the agent on pi4 was ended by SIGSEGV")
LINK_ERRORS = [DIED, UnreachableError("cut"), DeviceTimeoutError("silent")]
PASSING = [UnreachableError("off"), AuthenticationError("key"), DeviceBusyError("held"), OSError(5)]
PERMANENT_ERRORS = [HostKeyError("changed"), ModelError("gone"), UsageError("no such device")]
OWN_ERRORS = {DeviceError: InferenceFailedError, UsageError: UsageError}

is_up = precondition(lambda self: self.model_state is DeviceState.UP)
is_away = precondition(lambda self: self.model_state is DeviceState.AWAY)
is_asked = precondition(
    lambda self: self.model_state is DeviceState.UP and bool(self.session.pending)
)


class SteadyMachine(RuleBasedStateMachine):
    """The model: the values owed in order, how each was settled, and deaths at the side of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = Steps()
        self.sessions: list[FakeSession] = []
        self.next_session: Callable[[], FakeSession] = self.new_session
        self.told: list[str] = []
        self.session = self.new_session()
        self.reconnecting = ReconnectingSession(
            self.session, self.reopen, rng=random.Random(1), on_notice=self.told.append,
            clock=lambda: float(len(self.steps.waits)), background=self.steps,
        )  # fmt: skip
        self.reconnecting.configure(SPEC, None)
        self.model_state = DeviceState.UP
        self.owed: list[int] = []
        self.expected: dict[int, type[BaseException] | None] = {}
        self.settled: dict[int, int] = {}
        self.futures: dict[int, Future[Reply]] = {}
        self.deaths = 0
        self.retired: type[EdgeFlareError] | None = None
        self.chained = 0

    def new_session(self, **how: object) -> FakeSession:
        session = FakeSession(**how)  # type: ignore[arg-type]
        self.sessions.append(session)
        return session

    def reopen(self) -> FakeSession:
        return self.next_session()

    @property
    def suspect(self) -> bool:
        return bool(self.owed) and self.deaths == MAX_DEATHS - 1

    def expect(self, value: int, error: type[BaseException] | None) -> None:
        """Note in the model how a request is settled by what comes next."""
        if value == self.owed[0]:
            self.deaths = 0
        self.owed.remove(value)
        self.expected[value] = error

    def expect_all(self, error: type[BaseException]) -> None:
        for value in list(self.owed):
            self.expect(value, error)

    def ask(self, chain: bool = False) -> None:
        value = len(self.futures) + 1
        if self.retired is None:
            self.owed.append(value)
        else:
            self.expected[value] = self.retired
        future = self.futures[value] = self.reconnecting.submit([sample(value)])

        def settled(_: "Future[Reply]") -> None:
            self.settled[value] = self.settled.get(value, 0) + 1
            if chain:
                self.chained += 1
                self.ask()

        future.add_done_callback(settled)

    @rule(chain=st.booleans())
    def submit(self, chain: bool) -> None:
        self.ask(chain)

    @is_asked
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.session.pending) - 1))
        value = self.session.pending[index].value
        if value in self.owed:
            self.expect(value, None)
        self.session.answer(index)

    @is_asked
    @rule(data=st.data(), error=st.sampled_from([DeviceError, UsageError]))
    def refuse(self, data: st.DataObject, error: type[EdgeFlareError]) -> None:
        index = data.draw(st.integers(0, len(self.session.pending) - 1))
        value = self.session.pending[index].value
        if value in self.owed:
            self.expect(value, OWN_ERRORS[error])
        self.session.refuse(error("this request"), index)

    @is_up
    @rule(error=st.sampled_from(LINK_ERRORS), replies=st.integers(0, 2), quietly=st.booleans())
    def fail(self, error: EdgeFlareError, replies: int, quietly: bool) -> None:
        pending = [asked.value for asked in self.session.pending]
        self.note_loss(error)
        late = pending[1 if quietly else 0 :][:replies]
        for value in late:
            if value in self.owed:
                self.expect(value, None)
        self.session.fail(error, replies=replies, quietly=quietly)

    @is_asked
    @rule(error=st.sampled_from(LINK_ERRORS))
    def fail_by_what_one_request_says(self, error: EdgeFlareError) -> None:
        self.note_loss(error)
        self.session.refuse(error)

    def note_loss(self, error: EdgeFlareError) -> None:
        self.model_state = DeviceState.AWAY
        if self.owed and self.owed[0] in self.session.submitted:
            self.deaths = self.deaths + 1 if error is DIED else 0
            if self.deaths == MAX_DEATHS:
                self.expect(self.owed[0], InferenceFailedError)

    def attempt(self, give: Callable[[], FakeSession]) -> None:
        """Let the wait of the backoff pass, and the next try end so."""
        tries = 0

        def tried() -> FakeSession:
            nonlocal tries
            tries += 1
            return give()

        self.next_session = tried
        while tries == 0:
            self.steps.step()
        self.next_session = self.new_session

    @is_away
    @rule()
    def come_back(self) -> None:
        self.attempt(self.new_session)
        self.session = self.sessions[-1]
        self.model_state = DeviceState.UP
        assert set(self.session.submitted) <= set(self.owed)

    @is_away
    @rule(after=st.integers(1, 3), error=st.sampled_from(LINK_ERRORS))
    def come_back_and_fail_while_asked_again(self, after: int, error: EdgeFlareError) -> None:
        reached = 1 if self.suspect else len(self.owed)
        self.attempt(lambda: self.new_session(fails_after=(after, error)))
        self.session = self.sessions[-1]
        self.session.fails_after = None
        self.model_state = DeviceState.UP
        if after <= reached:
            self.note_loss(error)

    @is_away
    @rule(error=st.sampled_from(PASSING))
    def stay_away(self, error: Exception) -> None:
        def fail() -> FakeSession:
            raise error

        self.attempt(fail)

    @is_away
    @rule(error=st.sampled_from(PERMANENT_ERRORS), configuring=st.booleans())
    def be_gone_for_good(self, error: EdgeFlareError, configuring: bool) -> None:
        def fail() -> FakeSession:
            if configuring:
                return self.new_session(configuring=error)
            raise error

        self.retire(type(error))
        self.attempt(fail)

    @is_away
    @rule()
    def come_back_as_another(self) -> None:
        self.retire(DeviceChangedError)
        self.attempt(lambda: self.new_session(fingerprint={"board": "Pi 5"}))

    def retire(self, error: type[EdgeFlareError]) -> None:
        self.model_state = DeviceState.RETIRED
        self.retired = error
        self.expect_all(error)

    @rule()
    def withdraw(self) -> None:
        self.expect_all(DeviceAwayError)
        self.reconnecting.withdraw()

    @is_away
    @rule(closing=st.booleans())
    def withdraw_or_close_within_the_reopening(self, closing: bool) -> None:
        def meanwhile() -> FakeSession:
            if closing:
                self.shut()
            else:
                self.withdraw()
            return self.new_session()

        self.attempt(meanwhile)
        if not closing:
            self.session = self.sessions[-1]
            self.model_state = DeviceState.UP

    @precondition(lambda self: len(self.futures) > 20)
    @rule()
    def close(self) -> None:
        self.shut()

    def shut(self) -> None:
        if self.model_state is not DeviceState.RETIRED:
            self.retire(DeviceError)
        self.reconnecting.close()

    @invariant()
    def state_is_the_models(self) -> None:
        assert self.reconnecting.state is self.model_state
        assert (self.reconnecting.away_s == 0.0) or self.model_state is not DeviceState.UP
        assert bool(self.reconnecting.detail) == (self.model_state is not DeviceState.UP)

    @invariant()
    def each_is_settled_once_and_rightly(self) -> None:
        for value, future in self.futures.items():
            if value in self.owed:
                assert not future.done()
                continue
            assert self.settled[value] == 1
            error = future.exception()
            if self.expected[value] is None:
                assert error is None
                assert int(future.result().outputs[0][0]) == -value
            else:
                assert type(error) is self.expected[value]

    @invariant()
    def what_is_owed_was_asked_in_order(self) -> None:
        assert self.session.submitted == sorted(self.session.submitted)
        if self.model_state is DeviceState.UP:
            asked = [value for value in self.owed if value in self.session.submitted]
            alone = self.suspect and len(asked) <= 1
            assert asked == (self.owed[:1] if alone else self.owed)
            assert self.session.configurations == [(SPEC, None)]

    def teardown(self) -> None:
        self.shut()
        self.steps.step()
        self.steps.step()
        self.each_is_settled_once_and_rightly()
        assert not self.owed
        assert all(session.closed for session in self.sessions)


TestSteadyMachine = SteadyMachine.TestCase
TestSteadyMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
