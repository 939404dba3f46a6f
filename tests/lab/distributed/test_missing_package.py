"""Without Dask its commands say what to install."""

import sys

import pytest

from edgeflare import UsageError
from edgeflare_lab.distributed import DaskCluster, run_worker


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    for use in (DaskCluster, run_worker):
        with pytest.raises(UsageError, match="`pip install"):
            use("tls://lab:8786")
