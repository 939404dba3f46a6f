"""The original model, run in the host's own process by the agent's runtimes."""

import queue
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from edgeflare.errors import EdgeFlareError, ModelError
from edgeflare.models.outputs import OutputReader
from edgeflare.types import Sample, Scores
from edgeflare_agent import errors as agent_errors
from edgeflare_agent.preprocess import prepare
from edgeflare_agent.runtimes import Runtime, load
from edgeflare_agent.spec import InputSpec, TensorInfo


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
        self._first = first
        self._idle.put(first)
        self._spec: InputSpec | None = None
        self._output = 0
        self._reader: OutputReader | None = None

    def configure(self, spec: InputSpec, output: TensorInfo) -> None:
        """Set how samples are prepared and which output counts."""
        self._spec = spec
        self._output = [tensor.name for tensor in self.outputs].index(output.name)

    def read_with(self, reader: OutputReader) -> None:
        """Set how raw outputs become scores."""
        self._reader = reader

    def raw(self, sample: Sample, spec: InputSpec | None = None) -> NDArray[Any]:
        """Return the raw output for one sample; `spec` prepares it in another way than configured."""
        chosen = spec or self._spec
        assert chosen is not None, "configure comes first"  # noqa: S101
        with _mapped(self.path), self._borrowed() as runtime:
            return runtime.run(prepare(sample, chosen))[self._output]

    def scores(self, samples: Sequence[Sample], spec: InputSpec | None = None) -> list[Scores]:
        """Return one score vector a sample; `spec` as for `raw`."""
        assert self._reader is not None, "read_with comes first"  # noqa: S101
        return [self._reader.scores(self.raw(sample, spec)) for sample in samples]

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
    except agent_errors.AgentError as error:
        raise EdgeFlareError(f"original model {path}: {error}") from error
