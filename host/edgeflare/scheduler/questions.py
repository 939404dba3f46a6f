"""Jobs of a single query: both models on a seed, or one device on another one's triggering input."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from edgeflare.errors import InferenceFailedError
from edgeflare.scheduler.budget import Counters
from edgeflare.types import Answer, Ask, Outputs, Sample

K = TypeVar("K")


@dataclass(frozen=True)
class Answered(Generic[K]):
    """The result of a single query: its `key`, the outputs, and the device's own seconds.

    `outputs` is None where the device can't answer on this input; `detail` says why then.
    """

    key: K
    outputs: Outputs | None
    seconds: float
    detail: str = ""


@dataclass
class Question(Generic[K]):
    """Queries the models on one sample; `key` identifies it for the caller."""

    key: K
    sample: Sample
    of: Literal["deployed", "both"] = "both"
    counters: Counters = field(default_factory=Counters)
    seconds_count: bool = False

    @property
    def held_bytes(self) -> int:
        """Twice the sample: it is held here and in the request."""
        return 2 * self.sample.nbytes

    def live(self) -> Generator[Ask, Answer, Answered[K]]:
        """Query once; return the result."""
        self.counters = Counters()
        try:
            answer = yield Ask((self.sample,), self.of)
        except InferenceFailedError as error:
            return Answered(self.key, None, self.counters.device_seconds, str(error))
        return Answered(self.key, answer.outputs[0], self.counters.device_seconds)
