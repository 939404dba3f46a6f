"""What counts as a deviation."""

from edgeflare.oracles.label import LabelOracle, Oracle

__all__ = ["LabelOracle", "Oracle"]
