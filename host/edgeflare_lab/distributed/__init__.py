"""Campaigns on the devices of several hosts, by Dask: see `DaskCluster` and `run_worker`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
