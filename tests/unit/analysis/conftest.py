"""The fixtures of this folder's tests."""

from campaign_stores import finished  # noqa: F401
