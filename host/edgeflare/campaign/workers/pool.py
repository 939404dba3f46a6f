"""The worker processes of a campaign's search, as its own process sees them."""

import os
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING

from edgeflare._internal.processes import MOST_DEATHS, described_status, python_calling
from edgeflare.campaign.workers.program import (
    Asked,
    Drop,
    Event,
    First,
    Message,
    WorkerSettings,
    serve,
)
from edgeflare.errors import EdgeFlareError
from edgeflare.scheduler.job import Turn
from edgeflare.words import campaign as words

if TYPE_CHECKING:
    from typing_extensions import Self

_WORTH_AFTER_S = 3.0
_WORTH_LEFT_S = 6.0
_WORTH_QUERY_S = 0.002
_START_S = 60.0
_MOST_LOSSES = 20
_MOST_BYTES = 2 << 30
_BYTES_EACH = 1 << 30
_MOST_PRINTED = 1 << 20
_LAST_BYTES = 500


class WorkerLostError(Exception):
    """A worker process ended, and with it the searches that it had."""


def usable_processors() -> int:
    """Return how many processors this process may use: those of its affinity and of its cgroup."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    usable = len(affinity(0)) if affinity else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        usable = min(usable, max(1, int(quota) // int(period)))
    return usable


def workers_wanted(original: Path) -> int:
    """Return the usual number of workers: one a processor, fewer for want of memory.

    The original's files of all of them together hold 2 GiB at most, and there is one worker at most
    for each GiB of the machine's memory. 0 where there would be one alone.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = max(1, original.stat().st_size)
    most = min(usable_processors(), _MOST_BYTES // size, memory // _BYTES_EACH)
    return most if most > 1 else 0


class _Worker:
    """One worker process. Its reader thread settles the futures of what was asked of it."""

    def __init__(self, on_end: Callable[["_Worker"], None]) -> None:
        """Start the process. Raises OSError."""
        self._on_end = on_end
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._waiting: dict[int, Future[Event]] = {}
        self._held: list[tuple[int, Message]] = []
        self._ended = False
        self.ended_at_start = False
        self.searches: set[int] = set()
        self._printed = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - open as long as the process
        self._connection, theirs = Pipe()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    python_calling(serve, str(theirs.fileno())),
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=self._printed,
                    stderr=self._printed,
                    start_new_session=True,  # Ctrl-C is the campaign's process'
                )
        except OSError:
            self._connection.close()
            self._printed.close()
            raise
        self._reader = threading.Thread(target=self._read, name="edgeflare-worker", daemon=True)

    def load(self, settings: WorkerSettings, answers: Sequence[bytes]) -> str:
        """Return why it can't search, empty where it can; `answers`: those of this process' original."""
        reason = words.ENDED_AT_START
        try:
            self._connection.send(settings)
            if not self._connection.poll(_START_S + settings.original.timeout_s):
                reason = words.DOES_NOT_START
            else:
                first: First = self._connection.recv()
                reason = "" if first == answers else words.OTHER_ORIGINAL
                if isinstance(first, str):
                    reason = first
        except (EOFError, OSError):
            self.ended_at_start = True
            reason += self._last_words()
        if reason:
            self.kill()
        self._reader.start()
        return reason

    def ask(self, number: int, message: Message) -> "Future[Event]":
        """Send a message about a search at the next `flush`; the future is its next event.

        Or it is WorkerLostError.
        """
        future: Future[Event] = Future()
        with self._lock:
            lost = self._ended
            if not lost:
                self._waiting[number] = future
                self.searches.add(number)
                self._held.append((number, message))
        if lost:
            future.set_exception(WorkerLostError("its worker process had ended"))
        return future

    def drop(self, number: int) -> None:
        """Forget a search, where it has not ended."""
        with self._lock:
            self._waiting.pop(number, None)
            if number in self.searches and not self._ended:
                self._held.append((number, Drop()))
            self.searches.discard(number)

    def kill(self) -> None:
        """End the process at once; what it has is lost. From any thread, safe to repeat."""
        self._process.kill()

    def join(self) -> None:
        """Wait until it was noticed that the process has ended."""
        self._reader.join()

    def flush(self) -> None:
        """Send the messages that are held."""
        if not self._held:
            return
        with self._sending:
            with self._lock:
                held, self._held = self._held, []
            if held:
                self._send(held)

    def _send(self, held: Sequence[tuple[int, Message]]) -> None:
        try:
            if os.fstat(self._printed.fileno()).st_size > _MOST_PRINTED:
                os.ftruncate(self._printed.fileno(), 0)  # it is written at its end: it starts again
            self._connection.send(held)
        except (OSError, ValueError):  # it has ended; ValueError: its files are closed already
            self.kill()  # the reader tells those who wait

    def _read(self) -> None:
        unread = ""
        try:
            while True:
                events = self._connection.recv()
                with self._lock:
                    told = [(self._waiting.pop(number, None), event) for number, event in events]
                    self.searches -= {
                        number for number, event in events if not isinstance(event, Asked)
                    }
                for future, event in told:
                    if future is not None:
                        future.set_result(event)
        except (EOFError, OSError):
            pass
        except Exception as fault:  # noqa: BLE001 - an object of a plug-in's that can't be made here
            unread = words.UNREAD_MESSAGE.format(type(fault).__name__, fault)
        self.kill()
        self._process.wait()
        with self._lock:
            self._ended = True
            waiting, self._waiting = self._waiting, {}
        self._on_end(self)  # before the futures: who is told looks for another worker at once
        error = WorkerLostError(self.ending + (unread or self._last_words()))
        for future in waiting.values():
            future.set_exception(error)
        with self._sending:
            self._connection.close()
        self._printed.close()

    @property
    def ending(self) -> str:
        """How the process ended."""
        return described_status(self._process.returncode)

    def _last_words(self) -> str:
        """Return the last line that the process printed."""
        self._printed.seek(max(0, self._printed.seek(0, os.SEEK_END) - _LAST_BYTES))
        lines = self._printed.read().decode(errors="replace").split("\n")
        return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")


class Link:
    """The way to one search in a worker process."""

    def __init__(self, worker: _Worker, number: int) -> None:
        self._worker = worker
        self._number = number

    def ask(self, message: Message) -> "Future[Event]":
        """Send a message; the future is the search's next event, or WorkerLostError."""
        return self._worker.ask(self._number, message)

    def close(self) -> None:
        """Forget the search, where it has not ended."""
        self._worker.drop(self._number)


class WorkerPool:
    """Worker processes for the searches of one campaign; leaving the context ends them.

    A number of `workers` is started when the context is entered. None: as many as
    `workers_wanted` says, started by `consider` once searches have taken 3 seconds and what is left
    is likely to take 6 more; until they are ready, searches run in this process. Where a worker
    can't be used, or its original gives other `answers` than this process' one (see `probed`),
    searches stay in this process, and `notice` is called once with the reason; it is
    also called where a worker ends. Another one takes its place, 20 times at most.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        workers: int | None,
        answers: Callable[[], Sequence[bytes]],
        notice: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._answers = answers
        self._notice = notice
        self._auto = workers is None
        self._wanted = workers_wanted(settings.original.path) if workers is None else workers
        self._lock = threading.Lock()
        self._ready: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._alone: _Worker | None = None
        self._turns: deque[Turn] = deque()
        self._starting: list[threading.Thread] = []
        self._numbers = count()
        self._losses = 0
        self._refused = self._closed = False
        self._began, self._used = time.monotonic(), time.process_time()

    def __enter__(self) -> "Self":
        """Start the workers whose number is stated, and wait for them."""
        if not self._auto:
            self._start(self._wanted)
            try:
                for thread in self._starting:
                    thread.join()
            except BaseException:  # Ctrl-C
                self.__exit__()
                raise
        return self

    def __exit__(self, *error: object) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.kill()
        for thread in self._starting:
            thread.join()
        for worker in workers:
            worker.join()

    def flush(self) -> None:
        """Send what is to be told to the workers."""
        for worker in tuple(self._all):
            worker.flush()

    def consider(self, done: int, left: int, queries: int) -> None:
        """Start the usual number of workers where that is worth it.

        By how many searches have ended, how many have not begun (those under way stay here), and
        how many queries were made: where one takes less than 2 ms of this process, workers cost as
        much as they bring.
        """
        spent = time.monotonic() - self._began
        if (
            self._auto
            and not self._starting
            and time.process_time() - self._used > _WORTH_QUERY_S * queries
            and left >= self._wanted
            and spent > _WORTH_AFTER_S
            and spent * left / max(1, done) > _WORTH_LEFT_S
        ):
            self._start(self._wanted)

    def link(self) -> Link | None:
        """Return the way to a new search in the worker that has the fewest; None: there is none."""
        with self._lock:
            worker = min(self._ready, key=lambda one: len(one.searches), default=None)
            return None if worker is None else Link(worker, next(self._numbers))

    def turn(self) -> Turn:
        """Return a future that is settled when a search may use the process for one alone."""
        turn = Turn()
        with self._lock:
            self._turns.append(turn)
            first = self._turns[0] is turn
        if first:
            turn.set_result(None)
        return turn

    def end_turn(self, turn: Turn) -> None:
        """Let the next search have the process for one alone."""
        with self._lock:
            was_first = self._turns[0] is turn
            self._turns.remove(turn)
            after = self._turns[0] if was_first and self._turns else None
        if after is not None:
            after.set_result(None)

    def link_alone(self) -> Link | None:
        """Return the way to a new search in a process that has no other; None: it can't be started."""
        if self._alone is None:
            self._alone = self._started(shared=False)
        return None if self._alone is None else Link(self._alone, next(self._numbers))

    def _start(self, number: int) -> None:
        def start() -> None:
            worker = self._started()
            with self._lock:
                if worker is not None and worker in self._all:
                    self._ready.append(worker)

        new = [threading.Thread(target=start, daemon=True) for _ in range(number)]
        self._starting += new
        for thread in new:
            thread.start()

    def _started(self, *, shared: bool = True) -> _Worker | None:
        """Start a process; return None, after a notice, where it can't search.

        One that ends while it starts may have been killed for want of memory, and is followed by
        another.
        """
        for _ in range(MOST_DEATHS):
            if self._refused:
                return None
            try:
                answers = self._answers()
                worker = _Worker(self._lost)
            except EdgeFlareError as error:  # this process' original can't be loaded again
                self._refuse(str(error))
                return None
            except OSError as error:
                self._refuse(error.strerror or str(error))
                return None
            with self._lock:
                self._all.add(worker)
                closed = self._closed
            if closed:
                worker.kill()
            reason = worker.load(self._settings._replace(shared=shared), answers)
            if not reason:
                return worker
            if self._closed:
                return None
            if not worker.ended_at_start:
                break
        self._refuse(reason)
        return None

    def _refuse(self, reason: str) -> None:
        with self._lock:
            known, self._refused = self._refused, True
        if not known:
            self._notice(words.WORKER_CANT.format(reason))

    def _lost(self, worker: _Worker) -> None:
        """Replace a worker that has ended."""
        with self._lock:
            self._all.discard(worker)
            was_ready = worker in self._ready
            if was_ready:
                self._ready.remove(worker)
            if worker is self._alone:
                self._alone = None
            going_on = was_ready and not self._closed
            self._losses += going_on
            again = going_on and self._losses <= _MOST_LOSSES
        if going_on:
            self._notice(words.WORKER_ENDED.format(worker.ending, len(worker.searches)))
        if again:
            self._start(1)
