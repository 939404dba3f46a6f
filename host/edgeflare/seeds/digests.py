"""Digests of a file's bytes, which are read in blocks, and of a sample."""

import hashlib
from typing import BinaryIO

import numpy as np

from edgeflare.types import Sample

_BLOCK = 1 << 20


def sha256_of(file: BinaryIO) -> str:
    """Return the digest, in hex, of all that is left to read in an open file. Raises OSError."""
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def digest_of_sample(sample: Sample) -> bytes:
    """Return a digest of a sample's shape and values: 16 bytes of BLAKE2b."""
    digest = hashlib.blake2b(repr(sample.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(sample).data)
    return digest.digest()
