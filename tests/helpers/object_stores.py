"""An S3 server on loopback, with a bucket, and its address and keys in the environment."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

BUCKET = "samples"

samples_in_folder = pytest.mark.parametrize(
    "store", ["sqlite", pytest.param("postgresql", marks=pytest.mark.extended)], indirect=True
)
"""Marks a test that reaches into the sample files of the fixture `store`."""


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The endpoint of a moto server, for the whole session; skips where moto is not installed."""
    server_module = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def set_environment(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Set all of AWS's variables: nothing of this machine's own configuration is used."""
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)


def client(service: str = "s3") -> Any:
    """A boto3 client of the server in the environment."""
    import boto3

    return boto3.client(service)


@pytest.fixture
def s3_place(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place of its own, `s3://bucket/prefix`, on the S3 server."""
    set_environment(monkeypatch, s3_server)
    client().create_bucket(Bucket=BUCKET)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def memory_place() -> str:
    """A place of its own in this process's memory."""
    pytest.importorskip("fsspec")
    return f"memory://{uuid.uuid4().hex}"
