"""What goes wrong with an object store is one sentence that names the place and what to do."""

import json
import re
import socket
import sys
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from object_stores import client

from edgeflare.errors import StoreError
from edgeflare.store import SeedInput, Store
from edgeflare.store.samples import open_samples
from edgeflare_lab.stores import objects

pytestmark = pytest.mark.extended
SEED = np.zeros((2, 2, 1), np.uint8)


def refusal(place: str) -> str:
    """The sentence with which every access to a place is refused."""
    said = set()
    for act in ("make", "put", "get", "exists"):
        with pytest.raises(StoreError) as refused:
            getattr(open_samples(place), act)(*{"make": [], "put": [SEED]}.get(act, ["ab" * 32]))
        said.add(str(refused.value))
    (sentence,) = said
    assert f"samples in {place}" in sentence
    return sentence


def test_no_such_bucket(s3_place: str) -> None:
    assert re.search("no such bucket; make it", refusal("s3://nothing-there/c"))
    assert re.search("a bucket's name has 3 to 63 lower-case letters", refusal("s3://Wrong_!/c"))


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "answer; check AWS_ENDPOINT_URL"),
        ({"AWS_ENDPOINT_URL": "nonsense"}, "Invalid endpoint: nonsense"),
        ({"AWS_ACCESS_KEY_ID": ""}, "credentials; set AWS_ACCESS_KEY_ID"),
    ],
)
def test_nothing_to_reach(s3_place, monkeypatch, variables, sentence) -> None:
    for name, value in variables.items():
        if value:
            monkeypatch.setenv(name, value)
        else:
            monkeypatch.delenv(name)
    monkeypatch.setattr(objects, "_ATTEMPTS", 1)
    assert sentence in refusal(s3_place)


def test_a_server_that_never_answers(s3_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_READ_S", 0.2)
    monkeypatch.setattr(objects, "_ATTEMPTS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert "the server does" in refusal(s3_place)


def test_no_tls(s3_place: str, s3_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.replace("http:", "https:"))
    assert "AWS_ENDPOINT_URL and AWS_CA_BUNDLE" in refusal(s3_place)


@pytest.fixture
def checked_rights(s3_server: str, s3_place: str) -> Iterator[dict[str, str]]:
    """The keys of a user who may do nothing, on a server that now checks keys and rights."""
    iam = client("iam")
    name = s3_place.rpartition("/")[2]
    iam.create_user(UserName=name)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    _check_from(s3_server, "0")
    yield {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    _check_from(s3_server, "inf")


def _check_from(server: str, requests: str) -> None:
    request = urllib.request.Request(
        f"{server}/moto-api/reset-auth", requests.encode(), {"Content-Type": "text/plain"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ((), "key; check AWS_ACCESS_KEY_ID"),
        (("AWS_ACCESS_KEY_ID",), "wrong; check AWS_SECRET_ACCESS_KEY"),
        (("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "right to read"),
    ],
)
def test_refused(checked_rights, s3_place, monkeypatch, own, sentence) -> None:
    for name in own:
        monkeypatch.setenv(name, checked_rights[name])
    assert sentence in refusal(s3_place)


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == "s3fs"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(import_module("fsspec.registry")._registry, "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)  # type: ignore[arg-type]
    assert "`pip install 'edgeflare[s3]'`" in refusal("s3://bucket/c")


def test_what_could_not_be_written_is_written_later(tmp_path, s3_place, monkeypatch) -> None:
    monkeypatch.setattr(objects, "_ATTEMPTS", 1)
    seeds = [SeedInput(str(value), np.full((2, 2, 1), value, np.uint8)) for value in range(40)]
    with Store.create(tmp_path / "c", {"seed": 1}, samples=s3_place) as store:
        store.add_seeds(seeds[:20])
    with monkeypatch.context() as away:
        away.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        with Store.open(tmp_path / "c") as store, pytest.raises(StoreError, match="not answer"):
            store.add_seeds(seeds[20:])
    with Store.open(tmp_path / "c") as store:
        assert store.seed_count() == 20
        store.add_seeds(seeds[20:])
        assert [int(sample[0, 0, 0]) for sample in store.seed_samples()] == list(range(40))


def test_who_may_only_read_is_told_so_at_the_first_sample(
    tmp_path: Path, checked_rights: dict[str, str], s3_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _check_from(client().meta.endpoint_url, "inf")
    name = s3_place.rpartition("/")[2]
    allowed = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [allowed]}
    client("iam").put_user_policy(
        UserName=name, PolicyName="read", PolicyDocument=json.dumps(policy)
    )
    _check_from(client().meta.endpoint_url, "0")
    for variable, value in checked_rights.items():
        monkeypatch.setenv(variable, value)
    with Store.create(tmp_path / "c", {"seed": 1}, samples=s3_place) as store:
        with pytest.raises(StoreError, match="no right"):
            store.add_seeds([SeedInput("a", SEED)])
        assert store.seed_count() == 0
