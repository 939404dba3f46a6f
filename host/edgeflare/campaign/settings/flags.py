"""The name under which a distribution's settings find `Flag`, which states a command-line flag."""

from edgeflare._internal.flags import Flag

__all__ = ["Flag"]
