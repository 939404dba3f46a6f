"""The requests that the agent knows, executed one at a time."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, cast

from edgeflare_agent.arrays import Array
from edgeflare_agent.audio_spec import Spec, spec_from_json
from edgeflare_agent.cache import verified
from edgeflare_agent.configuration.fixed_inputs import FixedInputs, GivenInputs
from edgeflare_agent.configuration.reduction import Reduction
from edgeflare_agent.decoding import (
    METADATA_KEY,
    Decoded,
    Decoder,
    RawOutput,
    decoded_to_arrays,
    decoder_in,
)
from edgeflare_agent.errors import AgentError, ModelError, RequestError
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.leases import Leases
from edgeflare_agent.preprocess import get_ready, prepare
from edgeflare_agent.repair import Repair
from edgeflare_agent.runtimes import Runtime, load
from edgeflare_agent.runtimes.base import check_fits, check_inputs, names_text
from edgeflare_agent.telemetry import clock, resources
from edgeflare_agent.wire import Frame, Kind, encode

_ABOUT = 200
_LONGEST_MESSAGE = 2000
_METADATA_ENTRY = 1 << 14
_METADATA_ALL = 1 << 18
_FIRST_READING_S = 4.0


class Worker:
    """Holds at most one loaded model; model files come from `root`/models and nowhere else.

    `readings` gives what was read last of the device, and waits up to a number of seconds for the
    first reading.
    """

    def __init__(
        self, root: str, leases: Leases, readings: Callable[[float], Dict[str, Any]]
    ) -> None:
        self._root = root
        self._leases = leases
        self._readings = readings
        self._runtime: Optional[Runtime] = None
        self._file_decoder: Optional[Decoder] = None
        self._spec: Optional[Spec] = None
        self._fixed: Optional[FixedInputs] = None
        """None: the model has a single input."""
        self._rows = 0
        self._read: Callable[[List[Array]], RawOutput] = _first
        self._count: Optional[int] = None
        """How many outputs are returned for a sample, where they were asked for by a list."""
        self._began: Optional[float] = None
        self._timer: Callable[[], float] = clock
        self._verbs: Dict[Kind, Callable[[Frame], Frame]] = {
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

    def reply(self, frame: Frame) -> List[bytes]:
        """Return the encoded reply to a request; an error of any kind is one, too."""
        try:
            reply = self.answer(frame)
            return encode(reply.kind, {"id": frame.header["id"], **reply.header}, reply.arrays)
        except Exception as error:  # noqa: BLE001  whatever a runtime does, the agent goes on
            return refusal(frame, *described(error))

    def answer(self, frame: Frame) -> Frame:
        """Return the reply to a request; raise AgentError, and whatever a runtime raises."""
        return self._verbs.get(frame.kind, _unknown)(frame)

    def _load(self, frame: Frame) -> Frame:
        path, what = self._model_file(frame)
        options = frame.header.get("options") or {}
        if not isinstance(options, dict):
            raise RequestError("options must be an object of names and values")
        if self._runtime is not None:
            self._runtime.close()
        self._runtime, self._spec, self._fixed = None, None, None
        runtime = load(path, str(frame.header.get("runtime")), options, self._root)
        try:
            check_inputs(runtime, what)
            self._file_decoder = decoder_in(runtime.metadata, what, runtime.outputs)
        except ModelError:
            runtime.close()
            raise
        self._runtime = runtime
        header = {
            "inputs": [info.to_json() for info in runtime.inputs],
            "outputs": [info.to_json() for info in runtime.outputs],
            "runtime": runtime.describe(),
            "metadata": _short_entries(runtime.metadata),
            "decoder": self._file_decoder and self._file_decoder.describe(),
        }
        return Frame(Kind.LOADED, header)

    def _model_file(self, frame: Frame) -> Tuple[str, str]:
        """Return the path of the file that is to be loaded, and what messages call it."""
        return verified(self._root, str(frame.header.get("model")), "model"), "the model"

    def _configure(self, frame: Frame) -> Frame:
        runtime = self._loaded()
        spec = spec_from_json(frame.header.get("input") or {})
        given, of_repair = _given_inputs(frame)
        fixed = FixedInputs.of(runtime.inputs, given)
        check_fits(fixed.tensor, spec.shape, spec.dtype)
        fixed.check_spec(spec)
        name = frame.header.get("output")
        decoder = self._decoder(frame.header.get("decoder"))
        stated, keep = frame.header.get("repair"), frame.header.get("keep")
        count = len(name) if isinstance(name, list) else None
        several = count is not None
        if (several or keep is not None) and (decoder is not None or stated is not None):
            raise RequestError(
                "a decoder or a repair is for one whole output: name one, without `keep`"
            )
        if decoder is not None:
            read: Callable[[List[Array]], RawOutput] = _decoding(decoder, runtime, name)
        elif several or keep is not None:
            read = _reducing(runtime, name, keep)
        elif stated is not None:
            repair = Repair.from_parts(stated, of_repair)
            index = _index_of_output(runtime, name)
            read = _repairing(repair, runtime.outputs[index], index)
        else:
            read = _picking(_index_of_output(runtime, name))
        get_ready(spec)
        self._read, self._count = read, count
        self._spec, self._fixed = spec, fixed if len(runtime.inputs) > 1 else None
        self._rows = given.rows
        return Frame(Kind.CONFIGURED, {})

    def _decoder(self, stated: Any) -> Optional[Decoder]:
        """Return the decoder that is stated; without a vocabulary it is the loaded file's own."""
        if stated is None:
            return None
        if not isinstance(stated, dict) or stated.get("vocabulary") is not None:
            return Decoder.from_json(stated)
        if self._file_decoder is None:
            raise ModelError("the model's file has no metadata {!r}".format(METADATA_KEY))
        return self._file_decoder

    def _infer(self, frame: Frame) -> Frame:
        runtime, spec = self._runtime, self._spec
        if runtime is None or spec is None:
            self._loaded()  # what is missing first
            raise RequestError("no input was configured; send CONFIGURE first")
        rows = self._rows_of(frame)
        seconds: List[float] = []
        answers: List[RawOutput] = []
        try:
            for sample, row in zip(frame.arrays, rows):
                self._began, begin = clock(), self._timer()
                tensor = prepare(sample, spec)
                if self._fixed is None:
                    outputs = runtime.run(tensor)
                else:
                    outputs = runtime.run_several(self._fixed.tensors(tensor, row))
                answers.append(self._read(outputs))
                seconds.append(self._timer() - begin)
        finally:
            self._began = None
        header: Dict[str, Any] = {"seconds": seconds}
        decoded = [answer for answer in answers if isinstance(answer, Decoded)]
        if decoded:
            header["decoded"] = True
            return Frame(Kind.RESULT, header, decoded_to_arrays(decoded))
        if self._count is not None:
            header["outputs"] = self._count
            tuples = cast("List[Tuple[Array, ...]]", answers)
            return Frame(Kind.RESULT, header, tuple(one for answer in tuples for one in answer))
        return Frame(Kind.RESULT, header, tuple(cast("List[Array]", answers)))

    def _rows_of(self, frame: Frame) -> Sequence[int]:
        """Return the row of each sample's seed, 0 where none is stated. Raises RequestError."""
        rows = frame.header.get("rows", [0] * len(frame.arrays))
        if not (
            isinstance(rows, list)
            and len(rows) == len(frame.arrays)
            and all(type(row) is int and 0 <= row < max(1, self._rows) for row in rows)
        ):
            raise RequestError("rows must name one of the configured rows for each sample")
        return rows

    def _lease(self, frame: Frame) -> Frame:
        words = [frame.header.get(name) for name in ("holder", "session", "about")]
        share = frame.header.get("share")
        if not all(isinstance(word, str) and word for word in words) or type(share) is not bool:
            raise RequestError("a lease names holder, session and about, and says whether to share")
        holder, session, about = map(str, words)
        self._leases.take(holder, session, about[:_ABOUT], share)
        return Frame(Kind.LEASED, {})

    def _status(self, _: Frame) -> Frame:
        leases = [lease.to_json() for lease in self._leases.held()]
        asked_for_it = self._runtime is None  # else a session begins, which waits for no sensor
        readings = self._readings(_FIRST_READING_S if asked_for_it else 0.0)
        return Frame(Kind.STATE, {"leases": leases, **readings, **resources(self._root)})

    def _loaded(self) -> Runtime:
        if self._runtime is None:
            raise RequestError("no model is loaded; send LOAD first")
        return self._runtime


def described(error: Exception) -> Tuple[str, str]:
    """Return an error's code and message."""
    if isinstance(error, AgentError):
        return error.code, str(error)[:_LONGEST_MESSAGE]
    return AgentError.code, "{}: {}".format(type(error).__name__, error)[:_LONGEST_MESSAGE]


def refusal(frame: Frame, code: str, message: str) -> List[bytes]:
    """Return the encoded ERROR that refuses a request."""
    header = {"id": frame.header.get("id"), "code": code, "message": message[:_LONGEST_MESSAGE]}
    return encode(Kind.ERROR, header)


def _unknown(frame: Frame) -> Frame:
    raise RequestError("{} is no request".format(frame.kind.name))


def _first(outputs: List[Array]) -> Array:
    return outputs[0]


def _picking(index: int) -> Callable[[List[Array]], Array]:
    return lambda outputs: outputs[index]


def _reducing(runtime: Runtime, names: Any, keep: Any) -> Callable[[List[Array]], RawOutput]:
    """Return what picks the outputs of these names, a list or one, and keeps some anchors.

    Raises RequestError where the model lacks one, or `keep` doesn't fit them.
    """
    several = isinstance(names, list)
    if several and (not names or len(set(map(str, names))) != len(names)):
        raise RequestError("name at least one output, and each once")
    places = [_index_of_output(runtime, name) for name in (names if several else [names])]
    reduction = None
    if keep is not None:
        reduction = Reduction.from_json(keep, [runtime.outputs[place] for place in places])

    def read(outputs: List[Array]) -> RawOutput:
        picked = [outputs[place] for place in places]
        if reduction is not None:
            picked = reduction.apply(picked)
        return tuple(picked) if several else picked[0]

    return read


def _repairing(repair: Repair, tensor: TensorInfo, index: int) -> Callable[[List[Array]], Array]:
    """Return what repairs an output; raise RequestError where the repair doesn't fit it."""
    repair.check_fits(tensor)
    return lambda outputs: repair.apply(outputs[index], tensor.quantization)


def _decoding(
    decoder: Decoder, runtime: Runtime, name: Optional[str]
) -> Callable[[List[Array]], Decoded]:
    """Return what decodes outputs; raise ModelError where the model's don't fit the decoder."""
    tensors = runtime.outputs
    decoder.check_outputs(tensors, name)
    return lambda outputs: decoder.decode(
        {info.name: raw for info, raw in zip(tensors, outputs)}, tensors, name
    )


def _given_inputs(frame: Frame) -> Tuple[GivenInputs, Sequence[Array]]:
    """Return the inputs of a CONFIGURE, and the arrays before theirs, which are a repair's.

    Raises RequestError where they are not well formed.
    """
    searched, names = frame.header.get("searched", []), frame.header.get("fixed", [])
    rows, axis = frame.header.get("rows", 0), frame.header.get("axis", -1)
    if not all(
        isinstance(some, list) and all(isinstance(one, str) for one in some)
        for some in (searched, names)
    ):
        raise RequestError("searched and fixed must be lists of names")
    if len(set(names)) != len(names) or len(names) > len(frame.arrays):
        raise RequestError("fixed must name each input once, with an array for each")
    if type(rows) is not int or rows < 0:
        raise RequestError("rows must be a number of rows, 0 or more")
    if axis not in (-1, -2):
        raise RequestError("axis must be -1 or -2, that of the pictures' width")
    first = len(frame.arrays) - len(names)
    given = GivenInputs(tuple(searched), dict(zip(names, frame.arrays[first:])), rows, axis)
    return given, frame.arrays[:first]


def _index_of_output(runtime: Runtime, name: Optional[str]) -> int:
    names = [info.name for info in runtime.outputs]
    if name is None and len(names) == 1:
        return 0
    if name not in names:
        raise RequestError(
            "{}; the model's outputs are {}".format(
                "name the output to return" if name is None else "no output {!r}".format(name),
                names_text(names),
            )
        )
    return names.index(name)


def _short_entries(metadata: Dict[str, str]) -> Dict[str, str]:
    """Return the entries that fit in a header; whole networks hide in some files' metadata."""
    kept, size = {}, 0
    for key, value in metadata.items():
        if key == METADATA_KEY:
            continue  # described apart, without its vocabulary
        size += len(key) + len(value)
        if len(key) + len(value) <= _METADATA_ENTRY and size <= _METADATA_ALL:
            kept[key] = value
    return kept
