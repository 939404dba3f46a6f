# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .board import (
    BoardStatus as BoardStatus,
    StopReport as StopReport,
    UpReport as UpReport,
    board_down as board_down,
    board_status as board_status,
    board_stopped as board_stopped,
    board_up as board_up,
)
from .machine import BoardSettings as BoardSettings
