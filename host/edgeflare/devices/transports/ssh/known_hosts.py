"""Known host keys: reads OpenSSH's known_hosts files and checks a key against them.

Differences to OpenSSH: ``@cert-authority`` lines are skipped (no host certificates), and a server
on another port than 22 is known as ``[host]:port`` alone.
"""

import base64
import binascii
import fnmatch
import hashlib
import hmac
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import paramiko

from edgeflare.devices.transports.ssh.config import Endpoint
from edgeflare.errors import HostKeyError


class HostKey(NamedTuple):
    """A key that a server presented; `fingerprint` as OpenSSH writes it, ``SHA256:...``.

    `trusted`: it is in known_hosts. `file`: its usual path on the device.
    """

    host: str
    port: int
    type: str
    fingerprint: str
    trusted: bool = False
    file: str = "/etc/ssh/ssh_host_ed25519_key.pub"


class KnownKey(NamedTuple):
    """One line of a known_hosts file; `number` counts from 1, `blob` is the public key."""

    file: Path
    number: int
    marker: str
    type: str
    blob: bytes


def fingerprint_of(blob: bytes) -> str:
    """Return ``SHA256:...`` of a public key in SSH's binary form."""
    digest = hashlib.sha256(blob).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def known_keys(name: str, files: Sequence[Path]) -> list[KnownKey]:
    """Return the keys that these files hold for a name (``host`` or ``[host]:port``), in order.

    Absent files hold none. Raises HostKeyError where a file can't be read.
    """
    found = []
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise HostKeyError(
                f"can't read the known host keys in {file}: {error.strerror}"
            ) from error
        for number, line in enumerate(lines, 1):
            words = line.split()
            marker = words.pop(0) if words and words[0].startswith("@") else ""
            if len(words) < 3 or words[0].startswith("#") or not _matches(name, words[0]):
                continue
            try:
                blob = base64.b64decode(words[2], validate=True)
            except binascii.Error:
                continue
            if marker in ("", "@revoked"):
                found.append(KnownKey(file, number, marker, words[1], blob))
    return found


def prefer_known_types(transport: paramiko.Transport, known: Sequence[KnownKey]) -> None:
    """Ask the server for a kind of key that is known already, where there is one."""
    wanted = {key.type for key in known if not key.marker}
    options = transport.get_security_options()
    options.key_types = sorted(options.key_types, key=lambda name: _plain(name) not in wanted)


def check_host_key(endpoint: Endpoint, key: paramiko.PKey) -> None:
    """Return where the key is known for the endpoint; raise HostKeyError in every other case."""
    blob = key.asbytes()
    known = known_keys(endpoint.known_as, endpoint.known_hosts)
    fingerprint = fingerprint_of(blob)
    who = f"the {key.get_name()} host key of {endpoint.address} ({fingerprint})"
    for entry in known:
        if entry.marker == "@revoked" and entry.blob == blob:
            raise HostKeyError(
                f"{who} is marked as revoked in {entry.file}, line {entry.number}: somebody may "
                "stand between you and the device; do not connect before its owner has cleared this up"
            )
    trusted = [entry for entry in known if not entry.marker]
    if any(entry.blob == blob for entry in trusted):
        return
    if not trusted:
        raise HostKeyError(
            f"{who} is unknown; compare this fingerprint with the device's own "
            f"(on the device: ssh-keygen -lf {endpoint.host_key_file}), then trust it with: "
            f"edgeflare devices trust {shlex.quote(endpoint.target)} --fingerprint {fingerprint}"
        )
    old = next((entry for entry in trusted if entry.type == key.get_name()), trusted[0])
    raise HostKeyError(
        f"{who} is not the one that is known, {fingerprint_of(old.blob)} in {old.file}, line "
        f"{old.number}: this may be an attack, or the device was set up anew; if you know why it "
        f"changed, remove the old one (ssh-keygen -R {shlex.quote(endpoint.known_as)} -f "
        f"{shlex.quote(str(old.file))}) and run: edgeflare devices trust "
        f"{shlex.quote(endpoint.target)} --fingerprint {fingerprint}"
    )


def _plain(algorithm: str) -> str:
    """Return the key type behind an algorithm: an RSA key signs under several names."""
    return "ssh-rsa" if algorithm.startswith("rsa-sha2-") else algorithm


def _matches(name: str, patterns: str) -> bool:
    if patterns.startswith("|"):
        return _matches_hashed(name, patterns)
    matched = False
    for pattern in patterns.lower().split(","):
        if fnmatch.fnmatchcase(name.lower(), re.sub(r"\[", "[[]", pattern.removeprefix("!"))):
            if pattern.startswith("!"):
                return False
            matched = True
    return matched


def _matches_hashed(name: str, field: str) -> bool:
    """Match a hashed name, ``|1|salt|HMAC-SHA1 of the name``."""
    _, _, rest = field.partition("|1|")
    salt, _, digest = rest.partition("|")
    try:
        expected = base64.b64decode(digest, validate=True)
        actual = hmac.digest(base64.b64decode(salt, validate=True), name.encode(), "sha1")
    except binascii.Error:
        return False
    return hmac.compare_digest(actual, expected)
