"""Which oracle decides for a pair of models."""

from typing import Literal, TypeAlias

from edgeflare.errors import UsageError
from edgeflare.oracles.label import LabelOracle
from edgeflare.oracles.protocol import Oracle
from edgeflare.oracles.tolerance import ToleranceOracle
from edgeflare.oracles.transcript import TranscriptOracle

OracleName: TypeAlias = Literal["auto", "label", "transcript", "tolerance"]


def oracle_for(
    name: OracleName,
    *,
    transcribes: bool,
    floor: float = 0.0,
    tolerance: float | None = None,
    labels_only: bool = False,
) -> Oracle:
    """Return the oracle of this name for a pair of models; "auto": by the kind of their answers.

    `transcribes`: both models are speech recognisers; `labels_only`: the deployed model tells a label and no scores.
    `floor` is the margin floor of the label and transcript oracles, `tolerance` that of the tolerance oracle. Raises
    UsageError where the oracle does not fit the models, and where RapidFuzz is missing.
    """
    if name == "auto":
        name = "transcript" if transcribes else "label"
    if transcribes and name != "transcript":
        raise UsageError(
            f"the {name} oracle compares scores of classes, and these models are speech recognisers: use "
            "--oracle transcript, or leave it out"
        )
    if name == "transcript":
        if not transcribes:
            raise UsageError(
                "the transcript oracle compares what speech recognisers hear, and these models give scores of "
                "classes: use --oracle label or tolerance, or leave it out"
            )
        return TranscriptOracle(floor)
    if name == "label":
        return LabelOracle(floor)
    if tolerance is None:
        raise UsageError("the tolerance oracle needs a tolerance: state it with --tolerance")
    if labels_only:
        raise UsageError(
            "the tolerance oracle compares scores, and the deployed model tells a label alone: use --oracle label, "
            "or leave it out"
        )
    return ToleranceOracle(tolerance)
