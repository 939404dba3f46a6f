"""EdgeFlare: find inputs on which a deployed model decides differently from its original."""

from edgeflare._version import __version__

__all__ = ["__version__"]
