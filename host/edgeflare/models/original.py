"""The original model, run in the host's own process by the agent's runtimes."""

import queue
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgeflare.errors import EdgeFlareError, InferenceFailedError, ModelError
from edgeflare.models.outputs import OutputReader, RawOutput
from edgeflare.types import Output, Sample
from edgeflare_agent import errors as agent_errors
from edgeflare_agent.audio_spec import Spec
from edgeflare_agent.decoders import Decoder, decoder_in
from edgeflare_agent.preprocess import prepare
from edgeflare_agent.runtimes import Runtime, load
from edgeflare_agent.spec import TensorInfo


class OriginalModel:
    """The original model. Safe to use from several threads, each with a runtime of its own if need be.

    Every sample is inferred alone, with the model's fixed number of threads, so an answer depends on
    nothing but the sample.
    """

    def __init__(self, path: Path, runtime: str, options: Mapping[str, Any]) -> None:
        """Load the model. Raises ModelError, or UsageError for an unknown runtime or option."""
        self.path = path
        self._runtime = runtime
        self._options = dict(options)
        self._idle: queue.LifoQueue[Runtime] = queue.LifoQueue()
        first = self._load()
        if len(first.inputs) != 1:
            names = ", ".join(tensor.name for tensor in first.inputs)
            raise ModelError(
                f"{path} has {len(first.inputs)} inputs ({names}); EdgeFlare drives models with one"
            )
        self.input: TensorInfo = first.inputs[0]
        self.outputs: Sequence[TensorInfo] = first.outputs
        self.metadata: Mapping[str, str] = first.metadata
        self.in_effect: Mapping[str, Any] = first.describe()
        with _mapped(path):
            self._file_decoder = decoder_in(first.metadata, str(path))
        self._first = first
        self._idle.put(first)
        self._spec: Spec | None = None
        self._output = 0
        self._output_name: str | None = None
        self._decoder: Decoder | None = None
        self._reader: OutputReader | None = None

    @property
    def decoder(self) -> dict[str, Any] | None:
        """Of a speech recogniser whose file says how its outputs are read: what identifies that."""
        return self._file_decoder and self._file_decoder.describe()

    def configure(
        self, spec: Spec, output: str | None, decoder: Mapping[str, Any] | None = None
    ) -> None:
        """Set how samples are prepared, which output counts, and what makes text of it.

        `output` and `decoder` as `DeviceSession.configure` takes them. Raises ModelError where the outputs don't fit
        the decoder, UsageError for a decoder that makes no sense.
        """
        self._spec, self._output_name = spec, output
        if decoder is None:
            self._decoder = None
            names = [tensor.name for tensor in self.outputs]
            self._output = 0 if output is None else names.index(output)
            return
        with _mapped(self.path):
            own = decoder.get("vocabulary") is None
            self._decoder = self._file_decoder if own else Decoder.from_json(dict(decoder))
            assert self._decoder is not None, "the file has a decoder"  # noqa: S101
            self._decoder.check_outputs(self.outputs, output)

    def read_with(self, reader: OutputReader) -> None:
        """Set how raw outputs become answers."""
        self._reader = reader

    def raw(self, sample: Sample, spec: Spec | None = None) -> RawOutput:
        """Return the raw output for one sample; `spec` prepares it in another way than configured.

        Raises InferenceFailedError where the runtime fails on it.
        """
        chosen = spec or self._spec
        assert chosen is not None, "configure comes first"  # noqa: S101
        with _mapped(self.path), self._borrowed() as runtime:
            outputs = runtime.run(prepare(sample, chosen))
            if self._decoder is None:
                return outputs[self._output]
            named = {tensor.name: raw for tensor, raw in zip(self.outputs, outputs, strict=True)}
            return self._decoder.decode(named, self.outputs, self._output_name)

    def scores(self, samples: Sequence[Sample], spec: Spec | None = None) -> list[Output]:
        """Return one answer a sample: its scores, or what was heard; `spec`, and what it raises, as for `raw`."""
        assert self._reader is not None, "read_with comes first"  # noqa: S101
        return [self._reader.read(self.raw(sample, spec)) for sample in samples]

    def close(self) -> None:
        """Free the runtimes."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def _load(self) -> Runtime:
        with _mapped(self.path):
            return load(str(self.path), self._runtime, self._options)

    @contextmanager
    def _borrowed(self) -> Iterator[Runtime]:
        if self._first.shareable:
            yield self._first
            return
        try:
            runtime = self._idle.get_nowait()
        except queue.Empty:
            runtime = self._load()
        try:
            yield runtime
        finally:
            self._idle.put(runtime)


@contextmanager
def _mapped(path: Path) -> Iterator[None]:
    try:
        yield
    except (agent_errors.ModelError, agent_errors.RequestError) as error:
        raise ModelError(f"original model: {error}") from error
    except agent_errors.InferenceError as error:
        raise InferenceFailedError(f"original model: {error}") from error
    except agent_errors.AgentError as error:
        raise EdgeFlareError(f"original model {path}: {error}") from error
