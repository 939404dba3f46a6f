"""The oracles by their documented names; they stand in `edgeflare.answers.oracles`."""

from edgeflare.answers.kind import Margins
from edgeflare.answers.oracles import (
    BUILT_IN,
    TASKS,
    ConfiguredOracle,
    DetectionOracle,
    LabelOracle,
    Oracle,
    OracleTraits,
    ToleranceOracle,
    TranscriptOracle,
    certainty,
    has_margin_below,
    margin,
    margins,
    oracle_for,
)

__all__ = [
    "BUILT_IN",
    "TASKS",
    "ConfiguredOracle",
    "DetectionOracle",
    "LabelOracle",
    "Margins",
    "Oracle",
    "OracleTraits",
    "ToleranceOracle",
    "TranscriptOracle",
    "certainty",
    "has_margin_below",
    "margin",
    "margins",
    "oracle_for",
]
