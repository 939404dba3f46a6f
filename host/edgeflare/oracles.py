"""The oracles by their documented names; they stand in `edgeflare.answers.oracles`."""

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
from edgeflare.answers.parts import Margins

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
