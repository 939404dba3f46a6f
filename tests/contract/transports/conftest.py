"""The phones of these tests hang on an adb server of their own."""

from adb_server import adb_server

__all__ = ["adb_server"]
