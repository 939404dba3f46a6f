"""The fixtures of this folder's tests."""

from stores import demo, finished, ran  # noqa: F401
