"""The original model, run on the host by the agent's runtimes, usually in processes of their own.

Such a process can be ended at any time, so that an inference without an end, or a runtime that
crashes, costs one answer and not the campaign. A process that was killed, as the system does when
memory is short, costs nothing but time: another one is asked again.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import plugins
from edgeflare._internal.processes import MOST_DEATHS, PAUSE_S
from edgeflare.answers.outputs import AnswerReader
from edgeflare.errors import (
    DeviceAwayError,
    EdgeFlareError,
    InferenceFailedError,
    ModelError,
    UsageError,
)
from edgeflare.models.original_process import (
    ORIGINAL_FAILED,
    LoadedModel,
    ModelHere,
    ModelProcess,
    ProcessEndedError,
    users_runtime,
)
from edgeflare.models.probe import Probe, probe_class
from edgeflare.types import Ask, Output, Query, split_rows
from edgeflare_agent.audio_spec import Spec
from edgeflare_agent.configuration.fixed_inputs import (
    ONE_INPUT,
    GivenInputs,
    configuration_of,
    joined,
    searched_inputs,
)
from edgeflare_agent.decoding import RawOutput, decoded_from_arrays
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import TensorInfo, is_batch_open
from edgeflare_agent.wire import Frame, Kind

_REQUEST_BYTES = 1 << 20
_MOST_BYTES = 2 << 30
"""The model files of all processes together; about what they hold in memory."""
_MOST_LOADS = 6
"""So many processes in a row can't be started, or are killed in loading, before a campaign pauses."""
R = TypeVar("R")


class OriginalSettings(NamedTuple):
    """What an `OriginalModel` was made and configured with, for another process."""

    path: Path
    runtime: str
    options: Mapping[str, Any]
    timeout_s: float
    configuration: Mapping[str, Any]
    reader: AnswerReader
    arrays: Sequence[NDArray[Any]] = ()
    """Those of the fixed inputs."""

    def load(self, *, here: bool = False) -> "OriginalModel":
        """Load the model once more. `here` and errors as for `OriginalModel`."""
        model = OriginalModel(
            self.path, self.runtime, self.options, timeout_s=self.timeout_s, here=here
        )
        model._set(self.configuration, self.arrays)
        model.read_with(self.reader)
        return model


class OriginalModel:
    """The original model. Safe to use from several threads at once.

    Every sample is inferred alone, with the model's fixed number of threads, so an answer depends
    only on the sample. There are as many processes as threads ask at once, but another one is
    started only when threads have waited for the others for as long as its start takes; at most one
    for each processor, and as many as hold 2 GiB of model files. An inference that takes longer
    than `timeout_s` ends its process.

    A process that ends by itself, or is killed, is replaced, and asked the same again: only a
    request at which three in a row end has failed. `on_notice` is told of the first.

    `here`: in this process, for one thread, where the runtime is no user's. That ends with a crash
    of the runtime, and with an inference that takes too long.
    """

    def __init__(
        self,
        path: Path,
        runtime: str,
        options: Mapping[str, Any],
        *,
        timeout_s: float = 60.0,
        here: bool = False,
    ) -> None:
        """Load the model.

        Raises ModelError (unknown runtimes, too), DeviceTimeoutError, and DeviceAwayError where no
        process can be started or each is killed; a request raises that where it can't be loaded
        again.
        """
        self.path = path
        self.on_notice: Callable[[str], None] = lambda _: None
        self._was_replaced = False
        self._load: dict[str, Any] = {
            "model": str(path),
            "runtime": runtime,
            "options": dict(options),
        }
        self._timeout_s = timeout_s
        self._here = here and not users_runtime(runtime)
        size = path.stat().st_size if path.is_file() else 0
        self._most = (
            1 if self._here else max(1, min(os.cpu_count() or 1, _MOST_BYTES // max(1, size)))
        )
        self._changed = threading.Condition()
        self._idle: list[LoadedModel] = []
        self._processes: set[LoadedModel] = set()
        weakref.finalize(self, _end, self._processes)
        self._closed = False
        self._processes_began = False
        self._count = 0
        self._waited_s = 0.0
        self._failed_starts = 0
        self._next_start = 0.0
        began = time.monotonic()
        with self._borrowed() as first:
            self._start_s = time.monotonic() - began
            loaded = first.loaded
        self.inputs: Sequence[TensorInfo] = [TensorInfo.from_json(one) for one in loaded["inputs"]]
        self.input = self.inputs[0]
        """The input that samples become, or several as one, as `fix_inputs` has them."""
        self.given = ONE_INPUT
        """What its inputs are given, as `fix_inputs` has it."""
        self._arrays: Sequence[NDArray[Any]] = ()
        self.outputs: Sequence[TensorInfo] = [
            TensorInfo.from_json(one) for one in loaded["outputs"]
        ]
        self.metadata: Mapping[str, str] = loaded["metadata"]
        self.in_effect: Mapping[str, Any] = loaded["runtime"]
        self.decoder: dict[str, Any] | None = loaded["decoder"]
        """What identifies how outputs become text, where the file says it."""
        self._configuration: Mapping[str, Any] | None = None
        self._reader: AnswerReader | None = None
        self._probe_lock = threading.Lock()
        self._probes: dict[str, Probe] = {}

    def fix_inputs(self, given: GivenInputs) -> None:
        """Set the input that samples become, and the arrays of the others, for `configure`.

        Raises UsageError where an input is missing or unknown.
        """
        try:
            self.input = self._searched(given)
        except RequestError as error:
            raise UsageError(f"the original model: {error}") from error
        self.given = given

    def _searched(self, given: GivenInputs) -> TensorInfo:
        searched = searched_inputs(self.inputs, given.names, given.fixed)
        return joined([self.inputs[place] for place in searched], given.axis)

    def configure(
        self,
        spec: Spec,
        output: str | Sequence[str] | None,
        decoder: Mapping[str, Any] | None = None,
        *,
        keep: Mapping[str, Any] | None = None,
    ) -> None:
        """Set how samples are prepared, which output counts, and the decoder.

        All as `DeviceSession.configure` takes them; the other inputs are those of `fix_inputs`.
        Raises ModelError where they don't fit the model.
        """
        if decoder is None and output is None:
            output = self.outputs[0].name
        configuration, arrays = configuration_of(spec, output, decoder, keep, self.given)
        self._set(configuration, tuple(arrays))

    @property
    def configuration(self) -> Mapping[str, Any]:
        """How samples are prepared, which output counts, and the decoder: what `configure` was given."""
        assert self._configuration is not None, "configure comes first"  # noqa: S101
        return self._configuration

    @property
    def reader(self) -> AnswerReader:
        """What makes answers of raw outputs: what `read_with` was given."""
        assert self._reader is not None, "read_with comes first"  # noqa: S101
        return self._reader

    @property
    def settings(self) -> OriginalSettings:
        """What another process needs to have the same model, configured as this one."""
        return OriginalSettings(
            self.path.absolute(),
            self.runtime,
            self._load["options"],
            self._timeout_s,
            self.configuration,
            self.reader,
            self._arrays,
        )

    def _set(self, configuration: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
        self._persist(lambda process: process.configure(configuration, arrays), ModelError, "")
        self._configuration, self._arrays = configuration, arrays

    def read_with(self, reader: AnswerReader) -> None:
        """Set how raw outputs become answers."""
        self._reader = reader

    def raw(self, sample: Query, spec: Spec | None = None) -> RawOutput:
        """Return the raw output for one sample; `spec` prepares it otherwise than configured.

        Raises InferenceFailedError where the runtime fails on it, takes too long, or crashes three
        times in a row; DeviceAwayError where the model can't be loaded again after a crash.
        """
        return self.raw_answer([sample], spec)[0][0]

    def scores(self, samples: Sequence[Query], spec: Spec | None = None) -> list[Output]:
        """Return one answer a sample, scores or a transcript; `spec` and errors as for `raw`."""
        return self._read(self.raw_answer(samples, spec)[0])

    def answer(self, samples: Sequence[Query]) -> tuple[list[Output], list[float]]:
        """Return one answer a sample, and the seconds that the model took for each.

        They are processor time where the model has one thread on the CPU, else wall time. Raises as
        `raw`.
        """
        raws, seconds = self.raw_answer(samples)
        return self._read(raws), seconds

    def raw_answer(
        self, samples: Sequence[Query], spec: Spec | None = None
    ) -> tuple[list[RawOutput], list[float]]:
        """Return the raw outputs, and seconds as `answer`; `spec`, errors as for `raw`."""
        configuration = self.configuration
        if spec is not None:
            configuration = {**configuration, "input": spec.to_json()}
        raws: list[RawOutput] = []
        seconds: list[float] = []
        fixed = self._arrays
        for part in _parts(samples):
            arrays, header = split_rows(part, configuration.get("rows", 0))

            def ask(process: LoadedModel, arrays: Any = arrays, header: Any = header) -> Frame:
                process.configure(configuration, fixed)
                return process.ask(Kind.INFER, header, arrays)

            reply = self._persist(ask, InferenceFailedError, " at this input")
            seconds += reply.header["seconds"]
            raws += _raw_outputs(reply)
        return raws, seconds

    def check_fixed_inputs(self, raw: RawOutput) -> None:
        """Raise UsageError where a raw output isn't of one sample, as by fixed inputs of several."""
        configuration = self._configuration
        if not self.given.fixed or configuration is None or "decoder" in configuration:
            return
        names = configuration["output"]
        names, raws = ([names], [raw]) if isinstance(names, str) else (names, raw)
        has_batch = is_batch_open(self.inputs)
        sizes = {
            one.name: one.values if has_batch or all(one.shape[:1]) else None
            for one in self.outputs
        }
        for name, one in zip(names, raws, strict=True):
            if isinstance(one, np.ndarray) and sizes[name] not in (None, one.size):
                raise UsageError(
                    f"with these fixed inputs the original answers one sample with {one.size} values "
                    f"of output {name!r}, which has {sizes[name]}: give arrays for one sample, or "
                    "rows for the seeds that an array `seeds` names"
                )

    @property
    def runtime(self) -> str:
        """The name of the runtime that runs it."""
        return str(self._load["runtime"])

    def probe(self, ask: Ask) -> tuple[list[Any], list[float]]:
        """Return what a probe answers to a request, for each sample.

        Computed in this process and thread, one request after the other: the seconds elsewhere are
        0. Raises as `check_probe`.
        """
        with self._probe_lock:
            answers = list(self._probe(ask.want).answer(ask))
        return answers, [0.0] * len(answers)

    def check_probe(self, name: str, others: Sequence[str] = ()) -> None:
        """Raise UsageError where there is no such probe, or it can't be asked of this model.

        `others` are the files of a `JointObjective`, which are checked, too.
        """
        with self._probe_lock:
            self._probes.pop(name, None)
            self._probe(name).check(others)

    def _probe(self, name: str) -> Probe:
        if name not in self._probes:
            self._probes[name] = plugins.made("probe", name, probe_class(name), self)
        return self._probes[name]

    def close(self) -> None:
        """End the processes. Safe to repeat; what they work on fails."""
        with self._changed:
            self._closed = True
            self._idle.clear()
            _end(self._processes)
            self._changed.notify_all()

    def _read(self, raws: Sequence[RawOutput]) -> list[Output]:
        return self.reader.read_all(raws)

    def _persist(
        self, ask: Callable[[LoadedModel], R], failure: type[EdgeFlareError], place: str
    ) -> R:
        """Return what a process answers; where it ends, another one is asked.

        Raises `failure` where several in a row ended, which then belongs to what is asked: `place`.
        """
        deaths = 0
        while True:
            try:
                with self._borrowed() as process:
                    return ask(process)
            except ProcessEndedError as ended:
                deaths += 1
                if deaths == MOST_DEATHS:
                    raise failure(_words(ended, f"{deaths} times in a row{place}")) from ended
                self._replace(ended, PAUSE_S if ended.may_pass and deaths == MOST_DEATHS - 1 else 0)

    def _replace(self, ended: ProcessEndedError, pause_s: float) -> None:
        """Tell of the first process that ended, drop idle ones that ended with it, and pause.

        Else those would count as further deaths at what is asked.
        """
        with self._changed:
            was_told, self._was_replaced = self._was_replaced, True
            for process in tuple(self._idle):
                if process.has_died(0.0):
                    self._idle.remove(process)
                    self._drop(process)
            self._changed.wait_for(lambda: self._closed, pause_s)
        if not was_told and not self._closed:
            again = "; another one is started and asked again, which changes no result"
            self.on_notice(_words(ended, again=again))

    @contextmanager
    def _borrowed(self) -> Iterator[LoadedModel]:
        process = None
        while process is None:
            process = self._idle_one() or self._started()
        try:
            yield process
        finally:
            with self._changed:
                if process.alive and process in self._processes:
                    process.idle_since = time.monotonic()
                    self._idle.append(process)
                else:
                    self._processes.discard(process)
                    self._count -= 1
                self._changed.notify()

    def _idle_one(self) -> LoadedModel | None:
        """Wait for an idle process; return None, already counted, if another is to be started."""
        began = time.monotonic()
        with self._changed:
            while True:
                while self._idle:
                    process = self._idle.pop()
                    if not process.has_died():
                        self._waited_s += time.monotonic() - began
                        return process
                    self._drop(process)
                if self._closed:
                    raise InferenceFailedError(f"{ORIGINAL_FAILED}{self.path} was closed")
                patience = None
                if self._count < self._most:
                    waited = self._waited_s + time.monotonic() - began
                    pause = self._next_start - time.monotonic()
                    patience = max(self._start_s - waited, pause) if self._count else 0.0
                    if patience <= 0:
                        self._count += 1
                        self._waited_s = 0.0
                        return None
                self._changed.wait(patience)

    def _drop(self, process: LoadedModel) -> None:
        process.end()
        self._processes.discard(process)
        self._count -= 1

    def _started(self) -> LoadedModel | None:
        """Return a new process, already counted; None where others have to do.

        Raises as `_loaded` the first time, later DeviceAwayError.
        """
        process: LoadedModel | None = None
        try:
            process = self._loaded()
        except EdgeFlareError as error:
            if self._others_have_to_do():
                return None
            if not self._processes_began:
                raise
            raise DeviceAwayError(
                f"{error}; it could be loaded before: all answers are kept, go on when it can be "
                "loaded again"
            ) from error
        finally:
            # loading took long, without the lock: the original may have been closed meanwhile
            with self._changed:
                if process is None:
                    self._count -= 1
                    self._changed.notify()
                elif self._closed:
                    process.end()
                else:
                    self._processes.add(process)
                    self._processes_began = True
                    self._failed_starts = 0
        return process

    def _others_have_to_do(self) -> bool:
        """Whether there are other processes; a further one is then started after a pause.

        The pauses double from one failed start to the next, so that where memory stays short those
        that run aren't disturbed for long.
        """
        with self._changed:
            if self._count == 1:
                return False
            if time.monotonic() >= self._next_start:  # else of several that fail at once
                self._failed_starts += 1
                self._next_start = time.monotonic() + PAUSE_S * 2**self._failed_starts
            return True

    def _loaded(self) -> LoadedModel | None:
        """Return a process with the loaded model; one that ends in loading is followed by another.

        None where others have to do. The pauses grow where none can be started or each is killed, as
        for want of memory. Raises ModelError, DeviceTimeoutError, DeviceAwayError.
        """
        deaths = 0
        while True:
            try:
                if self._here:
                    return ModelHere(self._load, self._timeout_s)
                return ModelProcess(str(self.path), self._load, self._timeout_s)
            except ProcessEndedError as ended:
                if self._others_have_to_do():
                    return None
                deaths += 1
                if deaths == (_MOST_LOADS if ended.may_pass else MOST_DEATHS):
                    failure = DeviceAwayError if ended.may_pass else ModelError
                    raise failure(_words(ended, f"{deaths} times in a row")) from ended
                with self._changed:  # 0, 1, 2, 4 and 8 s
                    self._changed.wait_for(lambda: self._closed, PAUSE_S * (2**deaths // 4))


def _words(ended: ProcessEndedError, times: str = "", again: str = "") -> str:
    """Return the sentence about processes that ended: how often, and what to do."""
    more = f"; {ended.more}" if ended.more else ""
    return f"{ORIGINAL_FAILED}{ended}{', ' if times else ''}{times}{more}{again}"


def _raw_outputs(reply: Frame) -> Sequence[RawOutput]:
    """Return the raw output of each sample in a RESULT; unaligned arrays are copied."""
    if reply.header.get("decoded"):
        return decoded_from_arrays(reply.arrays)
    arrays = [raw if raw.flags.aligned else raw.copy() for raw in reply.arrays]
    each = reply.header.get("outputs")
    if each is None:
        return arrays
    return [tuple(arrays[start : start + each]) for start in range(0, len(arrays), each)]


def _parts(samples: Sequence[Query]) -> Iterator[Sequence[Query]]:
    """Divide samples into requests of a bounded size."""
    most = max(1, _REQUEST_BYTES // max(1, samples[0].nbytes)) if samples else 1
    for begin in range(0, len(samples), most):
        yield samples[begin : begin + most]


def _end(processes: set[LoadedModel]) -> None:
    while processes:
        processes.pop().end()
