"""The names under which distributions find what states command-line flags."""

from edgeflare._internal.flags import (
    Flag,
    FlagsOfCampaign,
    SettingFlag,
    Typed,
    flags_in,
    flags_of,
    problems_of,
)

__all__ = [
    "Flag",
    "FlagsOfCampaign",
    "SettingFlag",
    "Typed",
    "flags_in",
    "flags_of",
    "problems_of",
]
