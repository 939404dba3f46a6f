"""A lab on this machine: Dask's own scheduler, and `edgeflare worker`s with local devices."""

import contextlib
import datetime as dt
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from command import DEMO, environment

from edgeflare import CampaignConfig, config_from

DEADLINE_S = 90.0
SEEDS = 24


def demo(out: Path, **settings: object) -> CampaignConfig:
    """The configuration of a campaign on the demo's models that searches in one process a host."""
    stated = {
        "original": {"path": str(DEMO / "original.onnx")},
        "deployed": {"path": str(DEMO / "deployed.tflite")},
        "seeds": {"path": str(DEMO / "seeds.npz"), "limit": SEEDS},
        "out": str(out),
        "workers": 0,
        **settings,
    }
    return config_from(stated, "test")


def wait_for(condition: Callable[[], object], what: str, process: "Process | None" = None) -> None:
    """Wait until something holds; the test fails where it never does, or the process ended."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if process is not None and process.popen.poll() is not None:
            raise AssertionError(f"{what}: ended with {process.popen.returncode}: {process.text}")
        assert time.monotonic() < deadline, f"{what}: {process.text if process else ''}"
        time.sleep(0.02)


class Process:
    """A process whose output goes to a file."""

    def __init__(
        self,
        command: Sequence[object],
        log: Path,
        env: Mapping[str, str],
    ) -> None:
        self._log = log
        with log.open("wb") as file:
            self.popen = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, env=dict(env), cwd=log.parent,
            )  # fmt: skip

    @property
    def text(self) -> str:
        """What it printed so far."""
        return self._log.read_text(errors="replace")

    @property
    def sentence(self) -> str:
        """The last line that it printed."""
        return (self.text.strip().splitlines() or [""])[-1]

    def wait(self) -> int:
        """Wait for its end; return its exit code."""
        return self.popen.wait(DEADLINE_S)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal and wait for its end."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        try:
            return self.popen.wait(20)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            return self.popen.wait()


class Lab:
    """A scheduler and its workers; `flags` are those for TLS of all commands."""

    def __init__(self, folder: Path, tls: "Authority | None" = None) -> None:
        self.folder = folder
        self.tls = tls
        self.port = free_port()
        self.address = f"{'tls' if tls else 'tcp'}://127.0.0.1:{self.port}"
        self.processes: list[Process] = []
        self.env = environment(folder)

    @property
    def flags(self) -> list[str]:
        return [] if self.tls is None else self.tls.flags("lab")

    def start(self, *command: object, log: str, env: Mapping[str, str] | None = None) -> Process:
        """Start a process that ends with the lab."""
        process = Process(command, self.folder / f"{log}.log", {**self.env, **(env or {})})
        self.processes.append(process)
        return process

    def start_scheduler(self) -> Process:
        """Start Dask's scheduler and wait until it answers."""
        flags = [*self.flags, "--host", "127.0.0.1", "--port", self.port, "--no-dashboard"]
        flags += ["--protocol", self.address.partition(":")[0]]
        self.scheduler = self.start(
            *(sys.executable, "-m", "distributed.cli.dask_scheduler", *flags), log="scheduler"
        )
        wait_for(lambda: "Scheduler at" in self.scheduler.text, "the scheduler", self.scheduler)
        return self.scheduler

    def start_worker(
        self,
        name: str,
        devices: str = "",
        *,
        flags: Sequence[object] = (),
        env: Mapping[str, str] | None = None,
        ready: bool = True,
        before: Sequence[str] = (),
        program: Sequence[str] = ("-m", "edgeflare.cli"),
    ) -> Process:
        """Start a worker of an inventory, one local device ``board`` where it is empty.

        `before`: the program that starts it, such as taskset; `program`: what Python runs. `ready`: wait until it is.
        """
        inventory = self.folder / f"{name}.toml"
        inventory.write_text(devices or device("board", self.folder / f"cache-{name}"))
        worker = self.start(
            *(*before, sys.executable, *program, "worker", self.address),
            *("--inventory", inventory, "--name", name, *self.flags, *flags),
            log=f"worker-{name}",
            env=env,
        )
        if ready:
            wait_for(lambda: f"the worker {name} offers" in worker.text, f"worker {name}", worker)
        return worker

    def edgeflare(self, *arguments: object, log: str) -> Process:
        """Start `edgeflare ARGUMENTS`."""
        return self.start(sys.executable, "-m", "edgeflare.cli", *arguments, log=log)

    def close(self) -> None:
        """End all processes, the last first."""
        for process in reversed(self.processes):
            process.end()


@contextlib.contextmanager
def lab(folder: Path, *workers: str, tls: "Authority | None" = None) -> Iterator[Lab]:
    """A lab with these workers, each with one local device."""
    made = Lab(folder, tls)
    try:
        made.start_scheduler()
        for name in workers:
            made.start_worker(name)
        yield made
    finally:
        made.close()


def device(name: str, cache: Path, **fields: object) -> str:
    """The inventory entry of a local device, whose leases are those of its cache."""
    stated = {"transport": "local", "cache": str(cache), **fields}
    lines = [f"{key} = {value!r}" for key, value in stated.items()]
    return "\n".join([f"[devices.{name}]", *lines, ""])


def free_port() -> int:
    """A port of this machine that nothing listens on just now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def is_alive(pid: int) -> bool:
    """Whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Authority:
    """A certificate authority of the test's own, and what it signed, in a folder."""

    def __init__(self, folder: Path) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID

        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"CA {folder.name}")])
        self._write("ca", self._key, self._certificate(self._name, self._key, is_ca=True))

    def sign(self, name: str) -> None:
        """Write NAME.pem and NAME.key, for 127.0.0.1."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID

        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._write(name, key, self._certificate(subject, key, is_ca=False))

    def flags(self, name: str, ca: "Authority | None" = None) -> list[str]:
        """The flags of Dask and EdgeFlare for a signed certificate."""
        if not (self.folder / f"{name}.pem").exists():
            self.sign(name)
        files = (
            (ca or self).folder / "ca.pem",
            *(self.folder / f"{name}{s}" for s in (".pem", ".key")),
        )
        names = ("--tls-ca-file", "--tls-cert", "--tls-key")
        return [word for pair in zip(names, map(str, files), strict=True) for word in pair]

    def _certificate(self, subject, key, *, is_ca: bool):
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        now = dt.datetime.now(dt.timezone.utc)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _write(self, name: str, key, certificate) -> None:
        from cryptography.hazmat.primitives import serialization as form

        plain = form.NoEncryption()
        (self.folder / f"{name}.pem").write_bytes(certificate.public_bytes(form.Encoding.PEM))
        (self.folder / f"{name}.key").write_bytes(
            key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, plain)
        )
