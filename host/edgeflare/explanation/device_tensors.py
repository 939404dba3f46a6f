"""The tensors of a TFLite model as they are on a device, and the layers that make a difference there."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices import DeviceSession
from edgeflare.errors import DeviceError
from edgeflare.explanation.layers import SAME_ANSWER, ReadFinding
from edgeflare.explanation.matching import Match
from edgeflare.explanation.results import Layers
from edgeflare.models import Spec
from edgeflare.models.tensors.graph import Values
from edgeflare.models.tensors.tflite_graph import TENSORS, TFLiteGraph

READABLE = {"tensors": True}
"""The option of the device's runtime with which a session can be read."""


class DeviceGraph(TFLiteGraph):
    """A ``.tflite`` file whose tensors are read on a device; the rest of it is read in the file.

    `read` takes samples, which the device prepares. `queries` counts what it was asked.
    """

    def __init__(
        self,
        path: Path,
        output: str | None,
        session: DeviceSession,
        spec: Spec,
        undisturbed: Mapping[str, Any],
    ) -> None:
        """Configure a session that has the `READABLE`.

        `undisturbed` describes the runtime that gave the device's answers. Raises DeviceError where
        reading changes what runs the model, or the device's tensors have other sizes than the
        file's, and the errors of `DeviceSession.configure`.
        """
        super().__init__(path, {"kernels": "reference"}, output)
        before, now = (_delegated(one) for one in (undisturbed, session.model.runtime))
        if before != now:
            raise DeviceError(
                f"{session.name} runs {path.name} by {before}, and by {now} where its tensors are "
                "read: a newer ai-edge-litert on the device can read them"
            )
        shapes = [one.shape for one in session.model.outputs if one.name == TENSORS]
        if shapes != [(self.size,)]:
            raise DeviceError(
                f"{session.name} announces tensors of {shapes} bytes for {path.name}, and the file "
                f"has {self.size:,}"
            )
        session.configure(spec, TENSORS)
        self.queries = 0
        self._session = session

    def read(self, given: NDArray[Any], names: Iterable[str]) -> dict[str, Values]:
        """Return what `ModelGraph.read` does, of a sample. Raises DeviceError and its kinds, too."""
        self.queries += 1
        [content] = self._session.submit([given]).result().outputs
        return self.split(np.asarray(content), names)


def own_matches(graph: TFLiteGraph) -> dict[str, Match]:
    """Return the matches of a file's tensors with themselves, of those that a part can start at."""
    return {
        name: Match(name, name, tuple(range(sum(n != 1 for n in shape))), shape)
        for name, shape, dtype in graph.layout
        if name != graph.output and (dtype == np.float32 or name in graph.grids)
    }


def are_known(layers: Layers | None, findings: Iterable[ReadFinding]) -> bool:
    """Whether stored contributions are those of these findings: they add up to what changes now."""
    if layers is None:
        return False
    return all(
        one.id in layers.disturbed
        or abs(sum(layers.contributions.get(one.id, ())) - one.margins[1] + one.margins[0])
        <= SAME_ANSWER
        for one in findings
    )


def _delegated(runtime: Mapping[str, Any]) -> str:
    """Return what runs a model beside the CPU's kernels; in how many parts doesn't matter."""
    return str(runtime.get("delegate") or "no delegate").partition(" in ")[0]
