# The public names; read at run time, too.

from .cluster import DaskCluster as DaskCluster
from .connection import Tls as Tls
from .connection import silence_dask as silence_dask
from .worker import run_worker as run_worker
