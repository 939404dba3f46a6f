"""Files of the cache folder that are named by their content."""

import hashlib
import os
import re

from edgeflare_agent.errors import ModelError, RequestError

_NAME = re.compile(r"([0-9a-f]{64})\.[a-z0-9]{1,16}")


def default_root() -> str:
    """Return the default cache folder."""
    return os.path.join(os.path.expanduser("~"), ".cache", "edgeflare")


def file_sha256(path: str) -> str:
    """Return the hex digest of a file's content."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def verified(root: str, name: str, what: str) -> str:
    """Return the path of a file in `root`/models, once its content matches the hash in its name.

    `what` names the file in messages. Raises RequestError for an invalid name, ModelError for a
    file that is missing or damaged.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise RequestError(
            "{!r} is no {} name: 64 hexadecimal digits and an extension".format(name[:100], what)
        )
    path = os.path.join(root, "models", name)
    if not os.path.isfile(path):
        raise ModelError("there is no {} file at {}".format(what, path))
    if file_sha256(path) != match.group(1):
        raise ModelError(
            "{} was changed or damaged on the device: its content is not what its name says; "
            "delete it and start again".format(path)
        )
    return path
