"""The way to a Dask scheduler: its address, TLS, and what its errors mean.

A scheduler and its workers run the code that they are sent, and a client unpickles what they return:
all of them must trust each other. With TLS only those take part who have a certificate of the lab's
own authority.
"""

import ipaddress
import logging
import re
import select
import socket
import ssl
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from edgeflare._internal import extras
from edgeflare.errors import UnreachableError, UsageError

_PORT = 8786
CONNECT_S = 15.0
"""Seconds that connecting to a scheduler may take."""
_ANSWER_S = 5.0
_SILENT_S = 1.0
"""Seconds after which a scheduler that hasn't said anything is asked whether it has TLS."""


class Tls(NamedTuple):
    """The files of TLS, in PEM format; None: as Dask's configuration says."""

    ca_file: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """Raise UsageError where a file isn't there, or one is named without the others."""
        flags = ("--tls-ca-file", "--tls-cert", "--tls-key")
        missing = [flag for flag, file in zip(flags, self, strict=True) if file is None]
        if 0 < len(missing) < len(flags):
            raise UsageError(f"TLS needs three files: name the one of {' and '.join(missing)}, too")
        for flag, file in zip(flags, self, strict=True):
            if file is not None and not file.is_file():
                raise UsageError(f"there is no file {file}, which {flag} names")


def scheduler_address(text: str, *, insecure: bool) -> str:
    """Return the address of a scheduler in full, such as ``tls://lab:8786``.

    TLS is the default, 8786 the port. Raises UsageError for an address that is none, and for one
    without TLS that isn't of this machine, unless `insecure`.
    """
    whole = text if "://" in text else f"tls://{text}"
    try:
        parts = urlsplit(whole)
        port = parts.port or _PORT
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in ("tls", "tcp") or not parts.hostname or parts.path not in ("", "/"):
        raise UsageError(
            f"{text!r} is no address of a Dask scheduler; it is of the form tls://HOST:{_PORT}"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if parts.scheme == "tcp" and not is_loopback(parts.hostname) and not insecure:
        raise UsageError(
            f"{text} has no TLS: a Dask scheduler and its workers run any code that a host sends "
            "them; use tls:// with certificates, or --insecure where the network is yours alone"
        )
    return f"{parts.scheme}://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def loopback_host(address: str) -> str | None:
    """Return the host of an address without TLS where that is loopback, else None."""
    parts = urlsplit(address)
    local = parts.scheme == "tcp" and is_loopback(parts.hostname or "")
    return parts.hostname if local else None


def security(address: str, tls: Tls) -> Any:
    """Return the `distributed.Security` for an address; None without TLS.

    Raises UsageError where the files of TLS are missing, or are none.
    """
    distributed = extras.distributed()
    if not address.startswith("tls://"):
        return None
    tls.check()
    stated = {
        key: str(file)
        for key, file in (
            ("tls_ca_file", tls.ca_file),
            ("tls_client_cert", tls.cert),
            ("tls_client_key", tls.key),
            ("tls_worker_cert", tls.cert),
            ("tls_worker_key", tls.key),
        )
        if file is not None
    }
    made = distributed.Security(require_encryption=True, **stated)
    if not (made.tls_ca_file and made.tls_client_cert):
        raise UsageError(
            f"{address} needs certificates: state --tls-ca-file, --tls-cert and --tls-key, or "
            "`distributed.comm.tls` in Dask's configuration"
        )
    try:
        made.get_connection_args("client")
        made.get_listen_args("worker")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the files of TLS can't be used ({_plain(error)}): the certificate, its key and the "
            "authority's certificate are to be PEM files that belong together"
        ) from error
    return made


def check_reached(address: str, found: Any) -> None:
    """Connect to a scheduler and leave it, so that a failure is known at once and has its cause.

    `found`: what `security` returned. Raises UnreachableError.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    try:
        with ExitStack() as stack:
            link = stack.enter_context(
                socket.create_connection((host, parts.port or _PORT), _ANSWER_S)
            )
            if found is not None:
                context = found.get_connection_args("client")["ssl_context"]
                link = stack.enter_context(context.wrap_socket(link, server_hostname=host))
            else:
                _check_no_tls(address, link)
            if not link.recv(1):  # it speaks first; a refused certificate is known only now
                raise ConnectionError("it closes the connection")
    except OSError as error:
        raise connection_error(address, error) from error


def _check_no_tls(address: str, link: socket.socket) -> None:
    """Raise UnreachableError where what listens at an address without TLS has it, and so waits."""
    if select.select([link], [], [], _SILENT_S)[0]:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent to it
    with socket.create_connection(link.getpeername()[:2], _ANSWER_S) as other:
        try:
            context.wrap_socket(other).close()
        except OSError as error:
            if "ALERT" not in str(error).upper():
                return
    raise UnreachableError(
        f"no Dask scheduler answers at {address}: what listens there has TLS; try "
        f"{address.replace('tcp', 'tls', 1)} with the --tls flags"
    )


def connection_error(address: str, error: BaseException) -> UnreachableError:
    """Return the error that says why a scheduler can't be reached."""
    where = f"no Dask scheduler answers at {address}"
    match error:
        case ssl.SSLCertVerificationError():
            text = (
                f"the certificate of {address} is refused ({error.verify_message}): the scheduler "
                "needs one that was signed by the authority of --tls-ca-file"
            )
        case ssl.SSLError() if "ALERT" in str(error).upper():
            text = (
                f"{address} refuses the certificate of --tls-cert ({_plain(error)}): it needs one "
                "that was signed by the scheduler's own authority"
            )
        case ssl.SSLError() if "WRONG_VERSION" in str(error):
            plain = address.replace("tls", "tcp", 1)
            text = f"{where}: what listens there has no TLS; start it with TLS, or try {plain}"
        case ssl.SSLError():
            text = f"{where} over TLS ({_plain(error)}); is it a scheduler that has TLS?"
        case ConnectionRefusedError():
            text = f"{where}: nothing listens there; start `dask scheduler`, or check the address"
        case socket.gaierror():
            text = f"{where}: the host is not known ({_plain(error)}); check the address"
        case TimeoutError():
            text = f"{where} in time; is it a scheduler, with TLS just where the address has it?"
        case _:
            text = f"{where} ({_plain(error)}); is it a scheduler, and its port reached from here?"
    return UnreachableError(text)


def _plain(error: BaseException) -> str:
    """Return an error's text in one line, without the line in Python's source that raised it."""
    text = re.sub(r"\(_ssl\.c:\d+\)", "", str(error))
    return " ".join(text.split())[:200] or type(error).__name__


def silence_dask() -> None:
    """Keep Dask's own messages off the terminal: what matters is raised, or in notices.

    It sets the level of Dask's loggers in the whole process. Raises UsageError without Dask.
    """
    extras.distributed()
    for name in ("distributed", "distributed.client", "distributed.worker", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
