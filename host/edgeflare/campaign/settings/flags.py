"""The names under which distributions find what states command-line flags."""

from edgeflare._internal.flags import Flag, SettingFlag, flags_of

__all__ = ["Flag", "SettingFlag", "flags_of"]
