"""known_hosts files: which lines hold a server's keys."""

import base64
import hashlib
import hmac

import pytest

from edgeflare.devices.transports.ssh.known_hosts import fingerprint_of, known_keys
from edgeflare.errors import HostKeyError

BLOB = b"\x00\x00\x00\x0bssh-ed25519" + bytes(32)
KEY = f"ssh-ed25519 {base64.b64encode(BLOB).decode()}"


def hashed(name):
    salt = hashlib.sha1(name.encode()).digest()
    digest = hmac.new(salt, name.encode(), "sha1").digest()
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, digest))


@pytest.mark.parametrize(
    ("field", "name", "found"),
    [
        ("host", "host", True), ("host", "hos", False), ("other,host", "host", True),
        ("Host", "host", True), ("host", "[host]:2222", False),
        ("[host]:2222", "[host]:2222", True), ("[host]:2222", "host", False),
        ("[::1]:2222", "[::1]:2222", True), ("*.lab", "pi.lab", True),
        ("*.lab,!pi.lab", "pi.lab", False), ("10.0.0.?", "10.0.0.7", True),
        ("[*]:2222", "[host]:2222", True), (hashed("host"), "host", True),
        (hashed("host"), "other", False), (hashed("[host]:2222"), "[host]:2222", True),
        ("|1|junk", "host", False), ("|2|a|b", "host", False),
    ],
)  # fmt: skip
def test_names_as_openssh_matches_them(tmp_path, field, name, found):
    file = tmp_path / "known_hosts"
    file.write_text(f"{field} {KEY} comment\n")
    assert [key.blob for key in known_keys(name, [file])] == ([BLOB] if found else [])


def test_lines_are_numbered_and_what_is_no_key_is_passed_over(tmp_path):
    file, second = tmp_path / "a", tmp_path / "b"
    file.write_text(
        f"# comment\n\nhost {KEY}\nhost ssh-rsa !!!\nhost\n@revoked host {KEY}\n"
        f"@cert-authority host {KEY}\n# host {KEY}\n"
    )
    second.write_bytes(b"\xff\xfe junk\nhost " + KEY.encode())
    keys = known_keys("host", [file, tmp_path / "absent", second])
    assert [(key.file, key.number, key.marker) for key in keys] == [
        (file, 3, ""),
        (file, 6, "@revoked"),
        (second, 2, ""),
    ]


def test_a_file_that_cannot_be_read_is_no_empty_file(tmp_path):
    with pytest.raises(HostKeyError, match="known host"):
        known_keys("host", [tmp_path])


def test_fingerprint_is_base64_without_padding():
    expected = base64.b64encode(hashlib.sha256(BLOB).digest()).decode().rstrip("=")
    assert fingerprint_of(BLOB) == f"SHA256:{expected}"
