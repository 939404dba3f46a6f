"""Campaigns whose samples are on an S3 server: they find what others find, and go on when it is back."""

from pathlib import Path

import pytest
from campaigns import found_in
from command import DEMO_PAIR, edgeflare, must_run
from object_stores import BUCKET, client

from edgeflare.store import Store
from edgeflare.store.samples import open_samples
from edgeflare_lab.stores import objects

pytestmark = pytest.mark.extended
ARGUMENTS = ("run", *DEMO_PAIR, "--limit", 6, "--timeout", 0)


def names(bucket_prefix: str) -> set[str]:
    """The names of all samples below a place."""
    prefix = bucket_prefix.removeprefix(f"s3://{BUCKET}/")
    pages = client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    return {one["Key"].rpartition("/")[2] for page in pages for one in page.get("Contents", ())}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with all in its folder."""
    home = tmp_path_factory.mktemp("plain")
    ran = edgeflare(*ARGUMENTS, "--control", "--out", "plain", home=home)
    assert ran.code in (0, 1), ran.err
    return home / "plain"


@pytest.mark.parametrize(
    "where",
    [
        pytest.param((), id="sqlite"),
        pytest.param(("--workers", 2), id="worker processes", marks=pytest.mark.slow),
        pytest.param(("--store",), id="postgresql"),
    ],
)
def test_a_campaign_finds_the_same(tmp_path, plain, s3_place, where, request) -> None:
    more = where if where != ("--store",) else (*where, request.getfixturevalue("database_url"))
    ran = edgeflare(
        *(*ARGUMENTS, "--control", "--out", "c", "--samples", s3_place, *more), home=tmp_path
    )
    assert ran.code in (0, 1), ran.err
    assert found_in(tmp_path / "c") == found_in(plain)
    assert not (tmp_path / "c" / "samples").exists()
    files = {path.name for path in plain.rglob("*.npy")}
    assert names(s3_place) == files
    assert edgeflare("report", "c", "--format", "html", home=tmp_path).code == 0
    replayed = edgeflare("replay", "c", home=tmp_path)
    assert replayed.code in (0, 1), replayed.err
    must_run("corpus", "add", "corpus", "c", home=tmp_path)


def test_figures_need_no_samples(tmp_path, s3_place, monkeypatch) -> None:
    ran = edgeflare(*ARGUMENTS, "--out", "c", "--samples", s3_place, home=tmp_path)
    assert ran.code in (0, 1), ran.err
    shown = edgeflare("show", "c", "--json", home=tmp_path)
    monkeypatch.setattr(objects, "_ATTEMPTS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    again = edgeflare("show", "c", "--json", home=tmp_path)
    assert again.json == shown.json
    for words in (("show", "c"), ("status", "c"), ("report", "c", "--format", "json")):
        assert edgeflare(*words, home=tmp_path).code == 0
    assert edgeflare("report", "c", home=tmp_path).code == 3


def test_a_server_that_goes_away_ends_a_campaign_that_can_be_resumed(
    tmp_path: Path, s3_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = edgeflare(*ARGUMENTS, "--no-survey", "--out", "plain", home=tmp_path)
    assert plain.code in (0, 1)
    monkeypatch.setattr(objects, "_ATTEMPTS", 1)
    put_all = objects.SampleObjects.put_all
    puts = []

    def put_until_away(self: objects.SampleObjects, samples: list[object]) -> list[str]:
        puts.append(len(samples))
        if len(puts) == 5:  # the seeds, and some findings, are there
            self._opened = None
            monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        return put_all(self, samples)  # type: ignore[arg-type]

    with monkeypatch.context() as away:
        away.setattr(objects.SampleObjects, "put_all", put_until_away)
        endpoint = client().meta.endpoint_url
        ran = edgeflare(
            *ARGUMENTS, "--no-survey", "--out", "c", "--samples", s3_place, home=tmp_path
        )
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert ran.code == 3
    assert f"samples in {s3_place}/c-" in ran.err
    assert "answer; check AWS_ENDPOINT_URL" in ran.err
    assert "resume" in ran.err
    resumed = edgeflare("resume", "c", home=tmp_path)
    assert resumed.code == plain.code, resumed.err
    assert found_in(tmp_path / "c") == found_in(tmp_path / "plain")


def test_no_campaign_is_begun_where_its_samples_can_not_be(tmp_path: Path, s3_place: str) -> None:
    ran = edgeflare(*ARGUMENTS, "--out", "c", "--samples", "s3://no-bucket/x", home=tmp_path)
    assert ran.code == 2
    assert "such bucket" in ran.err
    assert not (tmp_path / "c").exists()
    secret = edgeflare(*ARGUMENTS, "--samples", "s3://key:secret@bucket/x", home=tmp_path)
    assert secret.code == 2
    assert "has credentials in" in secret.err
    assert "secret@" not in secret.err


def test_samples_in_a_shared_folder(tmp_path: Path) -> None:
    ran = edgeflare(*ARGUMENTS, "--out", "c", "--samples", "shared", home=tmp_path)
    assert ran.code in (0, 1), ran.err
    with Store.open(tmp_path / "c") as store:
        place = store.samples_place
        assert store.has_sample(next(store.seeds()).sample)
    assert str(place).startswith(str(tmp_path / "shared" / "c-"))
    assert list(open_samples(place).sizes())
