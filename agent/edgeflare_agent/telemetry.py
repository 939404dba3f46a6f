"""What a request cost the device: latency and resident memory."""

import time
from typing import Optional

clock = time.perf_counter
"""Seconds on a monotonic clock; only differences mean anything."""


def rss_bytes() -> Optional[int]:
    """Return this process's resident memory in bytes, None where the system doesn't tell."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None
