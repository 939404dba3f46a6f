"""What counts as a deviation."""

from edgeflare.oracles.label import LabelOracle, Oracle
from edgeflare.oracles.margin import is_below, margin

__all__ = ["LabelOracle", "Oracle", "is_below", "margin"]
