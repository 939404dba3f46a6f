"""Devices: which there are, how they are reached, and the agent session on each.

What needs paramiko is imported when it is first used, so that a local device never waits for it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
