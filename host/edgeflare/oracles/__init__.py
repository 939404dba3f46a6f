"""What counts as a deviation."""

from edgeflare.oracles.choosing import OracleName, oracle_for
from edgeflare.oracles.label import LabelOracle
from edgeflare.oracles.margin import Margins, is_below, margin, margins
from edgeflare.oracles.protocol import Oracle
from edgeflare.oracles.tolerance import ToleranceOracle
from edgeflare.oracles.transcript import TranscriptOracle

__all__ = [
    "LabelOracle",
    "Margins",
    "Oracle",
    "OracleName",
    "ToleranceOracle",
    "TranscriptOracle",
    "is_below",
    "margin",
    "margins",
    "oracle_for",
]
