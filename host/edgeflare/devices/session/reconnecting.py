"""A session that reconnects: it reopens a lost device and sends pending requests again."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import copy
from functools import partial
from operator import methodcaller
from typing import Any, TypeAlias

from edgeflare._internal.text import clean_text, reason
from edgeflare.devices.fingerprints import check_unchanged
from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.devices.session.pending import MAX_DEATHS, PendingRequest, PendingRequests
from edgeflare.devices.session.reconnect_policy import Backoff, ReconnectState, one_line, silent
from edgeflare.devices.session.replies import Reply
from edgeflare.devices.session.session import DeviceSession
from edgeflare.devices.session.status import DeviceState, DeviceStatus, HealthTracker, Throughput
from edgeflare.devices.telemetry import Minutes
from edgeflare.errors import (
    AgentCrashedError,
    AgentDiedError,
    DeviceAwayError,
    DeviceChangedError,
    DeviceError,
    DeviceProtocolError,
    DeviceTimeoutError,
    EdgeFlareError,
    HostKeyError,
    InferenceFailedError,
    InferenceTimeoutError,
    ModelError,
    UnreachableError,
    UsageError,
)
from edgeflare.types import Query
from edgeflare_agent.audio_spec import Spec
from edgeflare_agent.configuration.fixed_inputs import ONE_INPUT, GivenInputs
from edgeflare_agent.decoding import RawOutput
from edgeflare_agent.repair import Repair

PERMANENT_ERRORS = (HostKeyError, UsageError, DeviceChangedError)
"""Errors of reopening after which no other attempt is made; ModelError is a UsageError."""
_OF_THE_LINK = (AgentDiedError, DeviceProtocolError, DeviceTimeoutError, UnreachableError)
_PERHAPS_BY_INPUT = (AgentCrashedError, InferenceTimeoutError)
_STABLE_S = 60.0
_MOST_WRONG = 3
"""Losses in a row that won't pass, after which a device is given up: one may be a bit that flipped."""


Task: TypeAlias = Iterator[float]
"""Background work as an iterator: yields the seconds to wait before its next step."""


def in_a_thread(task: Task, stop: threading.Event) -> None:
    """Do the task in a thread of its own; `stop` ends it at its next wait, at once."""

    def work() -> None:
        for seconds in task:
            if stop.wait(seconds):
                return

    threading.Thread(target=work, name="edgeflare-background", daemon=True).start()


def _fault_text(error: Exception) -> str:
    """Return why something failed that raises no error of ours: the system, or a fault of our own."""
    if isinstance(error, OSError | MemoryError):
        return reason(error)
    text = clean_text(str(error), LONGEST_LINE)
    return f"a fault of EdgeFlare's own, {type(error).__name__}: {text}"


def _closing(session: DeviceSession) -> Task:
    """Close a session in the background; its errors are ignored."""
    with suppress(EdgeFlareError, OSError):
        session.close()
    yield from ()


class ReconnectingSession:
    """A deployed model on a device that may be lost and come back; safe in several threads.

    It takes over an open session. When a session fails, the device is AWAY: requests without a
    reply stay queued in order, and `reopen` is called, with the delays of `backoff` drawn from
    `rng`, until it returns a new session or raises a permanent error (`PERMANENT_ERRORS`), which
    retires the device; so do three losses in a row by what an agent never sends. The new session must
    have the first one's fingerprint; it is configured as
    the last one was, and every pending request is sent again, the oldest first. Each future is
    settled once, with no lock held, in a thread of the session: its callbacks may submit again, but
    must be short.

    `on_notice` is called with one sentence when the device is lost (at once, then at most once a
    minute), is back, is retired, or its clock jumped; it must not raise. `name`, `device`, `model`
    and `fingerprint` are the first session's.
    """

    def __init__(
        self,
        session: DeviceSession,
        reopen: Callable[[], DeviceSession],
        *,
        rng: random.Random,
        on_notice: Callable[[str], None] = silent,
        backoff: Backoff = Backoff(),  # noqa: B008  frozen
        clock: Callable[[], float] = time.monotonic,
        background: Callable[[Task, threading.Event], None] = in_a_thread,
    ) -> None:
        self.name = session.name
        self.device = session.device
        self.model = session.model
        self.fingerprint = session.fingerprint
        self._reopen = reopen
        self._on_notice = on_notice
        self._clock = clock
        self._background = background
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._pending = PendingRequests()
        self._read: Callable[[RawOutput], Any] | None = None
        self._sending = False
        self._reopening = False
        self._configuration: Callable[[DeviceSession], None] | None = None
        self._session: DeviceSession | None = session
        self._latest = session
        self._up_since = clock()
        self._has_answered = True
        self._retired: EdgeFlareError | None = None
        self._wrong_in_a_row = 0
        self._reconnects = 0
        self._reconnect = ReconnectState(self.name, backoff, rng, on_notice, clock)
        self._throughput = Throughput(clock())
        self._health = HealthTracker(self.name, on_notice)
        session.on_health(self._health.record)
        session.on_failure(partial(self._lost, session))

    @property
    def state(self) -> DeviceState:
        """Whether the device answers; closed, it is RETIRED."""
        with self._lock:
            return self._state()

    @property
    def away_s(self) -> float:
        """Seconds since the device was last reached; 0.0 while it is up.

        A device that comes back and is lost again before it answers anything was not reached.
        """
        with self._lock:
            return 0.0 if self._session is not None else self._reconnect.seconds

    @property
    def detail(self) -> str:
        """Why the device is not up; empty while it is."""
        with self._lock:
            return self._detail()

    @property
    def depth(self) -> int:
        """Requests in flight that keep the device busy; while it is away, the last value."""
        return self._latest.window

    @property
    def round_trip_s(self) -> float | None:
        """The least of recent round trips to the agent, in seconds; None: not known."""
        return self._latest.health.round_trip_s

    @property
    def clock_jump_s(self) -> float:
        """The last jump of the device's clock, in seconds; 0.0: none."""
        return self._health.clock_jump_s

    @property
    def minutes(self) -> Minutes:
        """Telemetry of the device by minute, over all sessions."""
        return self._health.minutes

    def configure(
        self,
        spec: Spec,
        output: str | Sequence[str] | None,
        decoder: Mapping[str, Any] | None = None,
        repair: Repair | None = None,
        *,
        keep: Mapping[str, Any] | None = None,
        given: GivenInputs = ONE_INPUT,
    ) -> None:
        """Set what `DeviceSession.configure` sets, in the same way.

        Applies to later requests, in all sessions; while the device is away it is only stored.
        Raises UsageError, also while requests are pending, ModelError, and the error of a device
        that is retired.
        """
        with self._lock:
            if self._retired is not None:
                raise copy(self._retired)
            if self._pending:
                raise UsageError(
                    f"{self.name} still answers {len(self._pending)} requests; configure it after "
                    "them"
                )
            session, before = self._session, self._configuration
            configuration = methodcaller(
                "configure", spec, output, decoder, repair, keep=keep, given=given
            )
            self._configuration = configuration
        if session is None:
            return
        try:
            configuration(session)
        except EdgeFlareError as error:
            if session.failure is not None or isinstance(error, _OF_THE_LINK):
                self._lost(session, session.failure or error)
                return
            with self._lock:
                self._configuration = before
            raise

    def read_with(self, read: Callable[[RawOutput], Any]) -> None:
        """Set what makes answers of raw outputs, in a thread of the session; for later requests."""
        self._read = read

    def submit(self, samples: Sequence[Query], *, raw: bool = False) -> "Future[Reply[Any]]":
        """Queue raw samples, inferred one by one in this order; returns without waiting.

        The outputs are raw where `raw` says so or `read_with` was not called. The future can't be
        cancelled, and the samples must not change until it is done. Its errors:
        InferenceFailedError where the device can't answer on them, UsageError, DeviceAwayError
        after `withdraw`, ModelError where an output can't be read, and the error of a device that
        is retired.
        """
        with self._lock:
            retired = self._retired
            request = (
                self._pending.add(samples, None if raw else self._read) if retired is None else None
            )
        if request is None:
            refused: Future[Reply[Any]] = Future()
            refused.set_exception(retired and copy(retired))
            return refused
        self._send_queued()
        return request.future

    def status(self) -> DeviceStatus:
        """Return the device's current status."""
        latest = self._latest
        health, in_flight, depth = latest.health, latest.in_flight, latest.window
        busy = self._health.busy
        with self._lock:
            state = self._state()
            up = state is DeviceState.UP
            return DeviceStatus(
                name=self.name,
                state=state,
                detail=self._reconnect.description if state is DeviceState.AWAY else self._detail(),
                queries=self._throughput.queries,
                queries_per_s=self._throughput.per_s(self._clock()),
                in_flight=in_flight if up else 0,
                depth=depth,
                busy=busy if up else None,
                latency_median_s=self._throughput.latency_s(0.5),
                latency_p99_s=self._throughput.latency_s(0.99),
                temperature_c=health.temperature_c if up else None,
                throttled=health.throttled if up else None,
                throttle_reasons=health.throttle_reasons if up else (),
                reconnects=self._reconnects,
                requests=self._throughput.requests,
            )

    def withdraw(self) -> None:
        """Fail pending requests with DeviceAwayError; a device that is away is still reopened."""
        with self._lock:
            pending = self._pending.drain()
            why = self._detail()
        what = f"what {self.name} was asked is taken back"
        self._fail(pending, DeviceAwayError(what + (f": {why}" if why else "")))

    def give_up(self, error: EdgeFlareError) -> None:
        """Retire the device: pending requests fail with this error, as later ones do."""
        self._retire(error)

    def close(self) -> None:
        """Close the session, or stop reopening; pending requests fail. Safe to repeat."""
        session = self._end(DeviceError(f"the session with {self.name} was closed"))
        if session is not None:
            session.close()

    def _state(self) -> DeviceState:
        if self._retired is not None:
            return DeviceState.RETIRED
        return DeviceState.UP if self._session is not None else DeviceState.AWAY

    def _detail(self) -> str:
        if self._session is not None:
            return ""
        cause = self._retired or self._reconnect.cause
        return one_line(cause) if cause is not None else ""

    def _send_queued(self) -> None:
        """Send the queued requests; one thread at a time, so that their order is preserved."""
        with self._lock:
            if self._sending:
                return
            self._sending = True
        while True:
            with self._lock:
                session = self._session
                request = None if session is None else self._pending.send_next(self._clock())
                if session is None or request is None:
                    self._sending = False
                    return
            try:
                sent = session.submit(request.samples)
            except Exception as error:  # noqa: BLE001  the samples' fault; their future tells it
                self._settle(request, error)
            else:
                sent.add_done_callback(partial(self._answered, request, session))

    def _answered(
        self, request: PendingRequest, session: DeviceSession, sent: "Future[Reply[RawOutput]]"
    ) -> None:
        """Take a reply or an error from a session, in its thread."""
        error = sent.exception()
        if error is not None:
            self._refused(request, session, error)
            return
        reply = sent.result()
        with self._lock:
            now = self._clock()
            taken = self._pending.take(request)
            self._wrong_in_a_row = 0
            if taken and request.sent_at is not None:
                self._throughput.record_reply(now, len(request.samples), now - request.sent_at)
            self._has_answered = self._has_answered or session is self._session
        if taken:
            self._health.minutes.record_reply(reply.seconds)
            outputs: Sequence[Any] = reply.outputs
            try:
                if request.read is not None:
                    outputs = [request.read(output) for output in outputs]
            except ModelError as fault:
                request.future.set_exception(fault)
            except Exception as fault:  # noqa: BLE001  the caller waits for the future
                unread = ModelError(
                    f"an output of the deployed model can't be read: {_fault_text(fault)}"
                )
                unread.__cause__ = fault
                request.future.set_exception(unread)
            else:
                request.future.set_result(Reply(outputs, reply.seconds))
        self._send_queued()

    def _refused(
        self, request: PendingRequest, session: DeviceSession, error: BaseException
    ) -> None:
        failure = session.failure
        if failure is None and isinstance(error, _OF_THE_LINK):
            failure = error
        if failure is not None:
            self._lost(session, failure)
            return
        with self._lock:
            if self._session is not session:  # closed by this side: it is asked again
                return
        if type(error) is DeviceError:
            error = InferenceFailedError(str(error))
        self._settle(request, error)
        self._send_queued()

    def _settle(self, request: PendingRequest, error: BaseException) -> None:
        with self._lock:
            taken = self._pending.take(request)
        if taken:
            request.future.set_exception(error)

    def _fail(self, pending: Sequence[PendingRequest], error: EdgeFlareError) -> None:
        for request in pending:
            request.future.set_exception(copy(error))

    def _lost(self, session: DeviceSession, error: EdgeFlareError) -> None:
        """Drop a failed session, once, and start reopening the device."""
        with self._lock:
            if self._session is not session:
                return
            self._session = None
            stable = self._clock() - self._up_since >= _STABLE_S
            self._reconnect.begin(error, new_loss=self._has_answered or stable)
            given_up = self._pending.requeue(died=isinstance(error, _PERHAPS_BY_INPUT))
            idle, self._reopening = not self._reopening, True
        if self._is_hopeless(error):
            self._retire(error)
        if idle:
            self._background(self._reopen_until_up(), self._stop)
        self._background(_closing(session), self._stop)
        if given_up is not None:
            given_up.future.set_exception(
                InferenceFailedError(
                    f"{self.name} could not answer on this input {MAX_DEATHS} times in a row: "
                    f"{one_line(error)}"
                )
            )

    def _is_hopeless(self, error: EdgeFlareError) -> bool:
        """Count a loss; whether it was the last of several that another attempt can't mend."""
        if not isinstance(error, DeviceError) or error.may_pass:
            return False
        with self._lock:
            self._wrong_in_a_row += 1
            return self._wrong_in_a_row >= _MOST_WRONG

    def _reopen_until_up(self) -> Task:
        """Reopen the device, with delays, until it is up, retired or closed; only one runs."""
        while True:
            with self._lock:
                if self._state() is not DeviceState.AWAY:
                    self._reopening = False
                    return
                delay = self._reconnect.next_delay_s()
            self._reconnect.report_lost()
            yield delay
            try:
                session = self._reopen()
                self._adopt(session)
            except PERMANENT_ERRORS as error:
                self._retire(error)
            except Exception as error:  # noqa: BLE001  whatever it is, it may pass
                told = error
                if not isinstance(told, EdgeFlareError):
                    told = DeviceError(_fault_text(error))
                    told.__cause__ = error
                if self._is_hopeless(told):
                    self._retire(told)
                with self._lock:
                    self._reconnect.cause = told

    def _adopt(self, session: DeviceSession) -> None:
        """Configure and use a new session. Raises DeviceChangedError and configuring's errors."""
        taken = False
        try:
            check_unchanged(self.name, self.fingerprint, session.fingerprint)
            while not taken:
                configuration = self._configuration
                if configuration is not None:
                    self._configure_again(session, configuration)
                with self._lock:
                    if self._retired is not None:
                        return
                    taken = configuration is self._configuration
                    if taken:
                        away_s, again = self._take_into_use(session)
        finally:
            if not taken:
                self._background(_closing(session), self._stop)
        self._reconnect.report_back(away_s, again)
        session.on_health(self._health.record)
        session.on_failure(partial(self._lost, session))
        self._send_queued()

    def _take_into_use(self, session: DeviceSession) -> tuple[float, int]:
        self._session = self._latest = session
        self._up_since = self._clock()
        self._has_answered = False
        self._reconnects += 1
        self._health.begin()
        return self._reconnect.seconds, self._pending.sent_count

    def _configure_again(
        self, session: DeviceSession, configure: Callable[[DeviceSession], None]
    ) -> None:
        try:
            configure(session)
        except PERMANENT_ERRORS as error:
            if session.failure is not None:
                raise DeviceError(one_line(session.failure)) from error
            raise

    def _retire(self, error: EdgeFlareError) -> None:
        session = self._end(error)
        if session is not None:
            self._background(_closing(session), self._stop)
        if self._retired is error:  # else it was closed meanwhile
            self._on_notice(f"{self.name} takes no more part: {one_line(error)}")

    def _end(self, error: EdgeFlareError) -> DeviceSession | None:
        """Refuse new requests, fail the pending ones with this error; return the open session."""
        with self._lock:
            if self._retired is not None:
                return None
            self._retired = error
            session, self._session = self._session, None
            if session is not None:
                self._reconnect.begin(None, new_loss=True)
            pending = self._pending.drain()
        self._stop.set()
        self._fail(pending, error)
        return session
