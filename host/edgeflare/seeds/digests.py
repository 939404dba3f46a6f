"""The SHA-256 of a file's bytes, without holding them."""

import hashlib
from typing import BinaryIO

_BLOCK = 1 << 20


def sha256_of(file: BinaryIO) -> str:
    """Return the digest, in hex, of all that is left to read in an open file. Raises OSError."""
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()
