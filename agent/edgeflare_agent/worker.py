"""The requests that the agent knows, executed one at a time."""

from typing import Any, Callable, Dict, Optional, Tuple

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError, RequestError
from edgeflare_agent.files import verified
from edgeflare_agent.leases import Leases
from edgeflare_agent.preprocess import prepare
from edgeflare_agent.runtimes import Runtime, load
from edgeflare_agent.runtimes.base import check_fits, check_single_input
from edgeflare_agent.spec import InputSpec
from edgeflare_agent.telemetry import clock, resources
from edgeflare_agent.wire import Frame, Kind

Reply = Tuple[Kind, Dict[str, Any], Tuple[Array, ...]]

_ABOUT = 200
_METADATA_ENTRY = 1 << 14
_METADATA_ALL = 1 << 18
_FIRST_READING_S = 4.0


class Worker:
    """Holds at most one loaded model; model files come from `root`/models and nowhere else.

    `readings` gives what was read last of the device, and waits so many seconds for the first time.
    """

    def __init__(
        self, root: str, leases: Leases, readings: Callable[[float], Dict[str, Any]]
    ) -> None:
        self._root = root
        self._leases = leases
        self._readings = readings
        self._runtime: Optional[Runtime] = None
        self._spec: Optional[InputSpec] = None
        self._output = 0
        self._began: Optional[float] = None
        self._verbs: Dict[Kind, Callable[[Frame], Reply]] = {
            Kind.LOAD: self._load,
            Kind.CONFIGURE: self._configure,
            Kind.INFER: self._infer,
            Kind.LEASE: self._lease,
            Kind.STATUS: self._status,
        }

    @property
    def inferring_s(self) -> Optional[float]:
        """Seconds since the inference under way began; None where none is. Any thread may ask."""
        began = self._began
        return None if began is None else clock() - began

    def answer(self, frame: Frame) -> Reply:
        """Return the reply to a request. Raises AgentError where it can't be done."""
        verb = self._verbs.get(frame.kind)
        if verb is None:
            raise RequestError("{} is no request".format(frame.kind.name))
        return verb(frame)

    def _load(self, frame: Frame) -> Reply:
        path = verified(self._root, str(frame.header.get("model")), "model")
        options = frame.header.get("options") or {}
        if not isinstance(options, dict):
            raise RequestError("options must be an object of names and values")
        if self._runtime is not None:
            self._runtime.close()
        self._runtime, self._spec = None, None
        runtime = load(path, str(frame.header.get("runtime")), options, self._root)
        try:
            check_single_input(runtime.inputs, "the model")
        except ModelError:
            runtime.close()
            raise
        self._runtime = runtime
        header = {
            "inputs": [info.to_json() for info in runtime.inputs],
            "outputs": [info.to_json() for info in runtime.outputs],
            "runtime": runtime.describe(),
            "metadata": _short_entries(runtime.metadata),
        }
        return Kind.LOADED, header, ()

    def _configure(self, frame: Frame) -> Reply:
        runtime = self._loaded()
        spec = InputSpec.from_json(frame.header.get("input") or {})
        check_fits(runtime.inputs[0], spec.shape, spec.dtype)
        self._output = _index_of_output(runtime, frame.header.get("output"))
        self._spec = spec
        return Kind.CONFIGURED, {}, ()

    def _infer(self, frame: Frame) -> Reply:
        runtime = self._loaded()
        if self._spec is None:
            raise RequestError("no input was configured; send CONFIGURE first")
        seconds, raw = [], []
        try:
            for sample in frame.arrays:
                self._began = begin = clock()
                raw.append(runtime.run(prepare(sample, self._spec))[self._output])
                seconds.append(clock() - begin)
        finally:
            self._began = None
        return Kind.RESULT, {"seconds": seconds}, tuple(raw)

    def _lease(self, frame: Frame) -> Reply:
        words = [frame.header.get(name) for name in ("holder", "session", "about")]
        share = frame.header.get("share")
        if not all(isinstance(word, str) and word for word in words) or type(share) is not bool:
            raise RequestError("a lease names holder, session and about, and says whether to share")
        holder, session, about = map(str, words)
        self._leases.take(holder, session, about[:_ABOUT], share)
        return Kind.LEASED, {}, ()

    def _status(self, _: Frame) -> Reply:
        leases = [lease.to_json() for lease in self._leases.held()]
        asked_for_it = self._runtime is None  # else a session begins, which waits for no sensor
        readings = self._readings(_FIRST_READING_S if asked_for_it else 0.0)
        return Kind.STATE, {"leases": leases, **readings, **resources(self._root)}, ()

    def _loaded(self) -> Runtime:
        if self._runtime is None:
            raise RequestError("no model is loaded; send LOAD first")
        return self._runtime


def _index_of_output(runtime: Runtime, name: Optional[str]) -> int:
    names = [info.name for info in runtime.outputs]
    if name is None and len(names) == 1:
        return 0
    if name not in names:
        raise RequestError(
            "{}; the model's outputs are {}".format(
                "name the output to return" if name is None else "no output {!r}".format(name),
                ", ".join(names),
            )
        )
    return names.index(name)


def _short_entries(metadata: Dict[str, str]) -> Dict[str, str]:
    """Return the entries that fit in a header; whole networks hide in some files' metadata."""
    kept, size = {}, 0
    for key, value in metadata.items():
        size += len(key) + len(value)
        if len(key) + len(value) <= _METADATA_ENTRY and size <= _METADATA_ALL:
            kept[key] = value
    return kept
