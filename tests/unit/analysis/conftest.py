"""The fixtures of this folder's tests."""

from stores import finished  # noqa: F401
