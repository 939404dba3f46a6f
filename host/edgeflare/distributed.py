"""The names of `edgeflare_lab.distributed`, which was here in 0.2."""

from edgeflare._internal.moved import names_of

__getattr__, __dir__, __path__ = names_of(__name__, "edgeflare_lab.distributed")
