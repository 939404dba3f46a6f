"""Which oracle decides for a pair of models.

A user's oracle is an entry point of the group ``edgeflare.oracles``: a class or function that returns an `Oracle` when
called with the margin floor.
"""

from typing import Annotated, TypeAlias

from edgeflare import plugins
from edgeflare.errors import UsageError
from edgeflare.oracles.label import LabelOracle
from edgeflare.oracles.protocol import Oracle
from edgeflare.oracles.tolerance import ToleranceOracle
from edgeflare.oracles.transcript import TranscriptOracle

_BUILT_IN = ("auto", "label", "transcript", "tolerance")

OracleName: TypeAlias = Annotated[str, plugins.known_name("oracle", _BUILT_IN)]
"""A built-in oracle or a user's."""


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
    UsageError where the oracle does not fit the models, and where RapidFuzz is missing. A user's oracle takes any models.
    """
    if name not in _BUILT_IN:
        return _users(name, floor)
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


def _users(name: str, floor: float) -> Oracle:
    found = plugins.load("oracle", name)
    if found is None:
        raise UsageError(f"there is no oracle {name!r}; is the distribution that has it installed?")
    try:
        oracle: Oracle = found(floor)
    except Exception as error:  # the user's code: it may raise anything
        raise plugins.unusable(
            "oracle", name, f"can't be made with the margin floor: {type(error).__name__}: {error}"
        ) from error
    if not (hasattr(oracle, "decide") and hasattr(oracle, "floor")):
        raise plugins.unusable(
            "oracle",
            name,
            f"gives a {type(oracle).__name__}; it must have `decide` and `floor`, as edgeflare.Oracle says",
        )
    return oracle
