"""Virtual arm64 boards: Debian on an emulated machine, reached through SSH like any other device."""

from edgeflare.virtual.board import (
    BoardStatus,
    StopReport,
    UpReport,
    board_down,
    board_status,
    board_stopped,
    board_up,
)
from edgeflare.virtual.settings import BoardSettings

__all__ = [
    "BoardSettings",
    "BoardStatus",
    "StopReport",
    "UpReport",
    "board_down",
    "board_status",
    "board_stopped",
    "board_up",
]
