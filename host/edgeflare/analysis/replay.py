"""Results of a replay, in figures and one by one."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainSerializer, computed_field

from edgeflare._internal.records import JsonRecord, in_json
from edgeflare.analysis.limits import LimitCheck
from edgeflare.campaign.pair.health import UnusableAnswers, unusable_answers
from edgeflare.campaign.replay.results import (
    STATES,
    ReplayedInput,
    ReplayState,
    replayed_inputs,
    stored_replay,
)
from edgeflare.campaign.status import expected_outcomes
from edgeflare.store import Store, campaign_text, open_store

if TYPE_CHECKING:
    from edgeflare.campaign.replay.reproduce import Reproduction


@dataclass(frozen=True)
class ReplayFigures:
    """A replay in figures: how many inputs are in each state, in all and by device.

    Of those that still deviate `elsewhere` have other labels than before; of the fixed ones
    `narrow` are so narrowly: with a tie, or a margin below the floor. The rest is as in
    `ReplaySummary`.
    """

    source: str
    source_kind: str
    deployed: str | None
    same_deployed: bool | None
    counts: dict[ReplayState, int]
    by_device: dict[str, dict[ReplayState, int]]
    elsewhere: int
    narrow: int
    unfinished: int


@dataclass(frozen=True)
class ReplaySummary(JsonRecord):
    """Results of a replay so far; see `ReplayedInput` for the states.

    `source` is the folder of the campaign, replay or corpus (`source_kind`) that the inputs came
    from, and `campaign` its id, None for a corpus. `inputs` has a row for each input and each
    device that was to answer it (each one where devices search for themselves, else the one that
    took it), in the order of devices and inputs; `unfinished` are still to be asked about.
    `original` and `deployed` are the names of the models' files; `same_original` and
    `same_deployed` whether they are those of the source, byte for byte, None where that is unknown.
    `unusable` says which model's answers can't be used, and why.
    """

    folder: str
    source: str
    source_kind: str
    campaign: str | None
    original: str | None
    deployed: str | None
    same_original: bool | None
    same_deployed: bool | None
    devices: tuple[str, ...]
    unfinished: int
    inputs: tuple[ReplayedInput, ...]
    notices: tuple[str, ...] = ()
    unusable: tuple[UnusableAnswers, ...] = ()

    @in_json
    def counts(self) -> dict[ReplayState, int]:
        """How many inputs are in each state, over all devices."""
        return _counts(self.inputs)

    @in_json
    def by_device(self) -> dict[str, dict[ReplayState, int]]:
        """How many inputs are in each state, by the name of the device."""
        return {
            name: _counts(tuple(one for one in self.inputs if one.device == name))
            for name in self.devices
        }

    @property
    def fixed(self) -> tuple[ReplayedInput, ...]:
        """Those that deviated before, and don't now."""
        return self._of("fixed")

    @property
    def still(self) -> tuple[ReplayedInput, ...]:
        """Those that deviated and do."""
        return self._of("still")

    @property
    def new(self) -> tuple[ReplayedInput, ...]:
        """Those that did not deviate and do now."""
        return self._of("new")

    @property
    def agrees(self) -> tuple[ReplayedInput, ...]:
        """Those that did not deviate and don't."""
        return self._of("agrees")

    @property
    def unstable(self) -> tuple[ReplayedInput, ...]:
        """Those that deviated now, but not each time."""
        return self._of("unstable")

    @property
    def nonfinite(self) -> tuple[ReplayedInput, ...]:
        """Those with NaN or infinity in an output."""
        return self._of("nonfinite")

    @property
    def failed(self) -> tuple[ReplayedInput, ...]:
        """Those on which a device could not answer."""
        return self._of("failed")

    @computed_field(  # type: ignore[prop-decorator] # JSON has how many
        return_type=Annotated[tuple[ReplayedInput, ...], PlainSerializer(len, return_type=int)]
    )
    @property
    def elsewhere(self) -> tuple[ReplayedInput, ...]:
        """Those that still deviate, but with other labels than before."""
        return tuple(one for one in self.still if one.elsewhere)

    @in_json
    def narrow(self) -> int:
        """How many of the fixed ones are so with a tie, or a margin below the floor."""
        return sum(one.narrow for one in self.fixed)

    @property
    def figures(self) -> ReplayFigures:
        """The same without the inputs."""
        return ReplayFigures(
            source=self.source,
            source_kind=self.source_kind,
            deployed=self.deployed,
            same_deployed=self.same_deployed,
            counts=self.counts,
            by_device=self.by_device,
            elsewhere=len(self.elsewhere),
            narrow=self.narrow,
            unfinished=self.unfinished,
        )

    def _of(self, state: ReplayState) -> tuple[ReplayedInput, ...]:
        return tuple(one for one in self.inputs if one.state == state)


@dataclass(frozen=True)
class Replayed:
    """What a replay tells: of all its inputs, with its limits, or of some `triggers` then and now.

    `folder` has the replay, where it is kept.
    """

    source: str
    folder: str | None
    summary: ReplaySummary | None = None
    limits: tuple[LimitCheck, ...] = ()
    triggers: "tuple[Reproduction, ...]" = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: the summary with the limits, or the triggers."""
        if self.summary is None:
            return {"source": self.source, "triggers": [one.to_json() for one in self.triggers]}
        return {**self.summary.to_json(), "limits": [one.to_json() for one in self.limits]}


def replay_summary(replay: Store | Path) -> ReplaySummary:
    """Return the results of a replay so far. Raises StoreError where its folder can't be used or is
    no replay's."""
    with open_store(replay) as store:
        source = stored_replay(store).source
        inputs = tuple(replayed_inputs(store))
        models, before = store.models, source.models
        return ReplaySummary(
            folder=campaign_text(store.folder),
            source=source.folder,
            source_kind=source.kind,
            campaign=source.campaign,
            original=models.get("original", {}).get("name"),
            deployed=models.get("deployed", {}).get("name"),
            same_original=_same(models, before, "original"),
            same_deployed=_same(models, before, "deployed"),
            devices=tuple(dict.fromkeys(one.device for one in inputs)),
            unfinished=max(0, expected_outcomes(store) - len(inputs)),
            inputs=inputs,
            notices=tuple(store.notices()),
            unusable=unusable_answers(store),
        )


def _same(now: Mapping[str, Any], before: Mapping[str, Any], which: str) -> bool | None:
    """Return whether a model is the one it was; None where either is unknown."""
    digests = [one.get(which, {}).get("sha256") for one in (now, before)]
    return None if None in digests else digests[0] == digests[1]


def _counts(inputs: tuple[ReplayedInput, ...]) -> dict[ReplayState, int]:
    counts = Counter(one.state for one in inputs)
    return {state: counts[state] for state in STATES}
