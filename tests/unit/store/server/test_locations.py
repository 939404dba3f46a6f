"""Texts that name a database, a place in it, and the folder that stands for it."""

import json

import pytest

from edgeflare.errors import StoreError
from edgeflare.store import CampaignLock, Store, folder_at
from edgeflare.store.location import (
    Location,
    database_url,
    is_address,
    is_campaign,
    read_pointer,
    schema_name,
    split_address,
    write_pointer,
)

URL = "postgresql://lab@db.example:5433/edgeflare?sslmode=verify-full"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "is not the URL of a database; write it as postgresql://user@host/database"),
        ("mysql://u@h/d", "is not a PostgreSQL database"),
        ("sqlite:///x.db", "is not a PostgreSQL database"),
        ("postgresql+asyncpg://u@h/d", "is not a PostgreSQL database"),
        ("postgres://u@h/d", "is not a PostgreSQL database"),
        ("postgresql://u:secret@h/d", "has a password, which would be stored"),
        ("postgresql://u@h/d?password=secret", "has a password, which would be stored"),
        ("postgresql://u@h", "names no database"),
        ("postgresql://u@h:port/d", "is not the URL of a database"),
        ("postgresql://u@h/d/name", "name the database alone"),
    ],
)
def test_what_is_no_database_is_one_sentence_without_a_password(text, words):
    with pytest.raises(StoreError, match=words) as caught:
        database_url(text)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parameters_are_kept_and_addresses_taken_apart():
    assert database_url(URL) == URL
    address = Location("campaign", URL, "tiny/control").address
    assert address == "postgresql://lab@db.example:5433/edgeflare/tiny/control?sslmode=verify-full"
    assert split_address(address) == (URL, "tiny/control")
    assert is_address(address)
    assert is_address("postgresql:/lab@db.example/edgeflare/tiny")  # as a Path has it
    assert split_address("postgresql:/lab@h/d/tiny") == ("postgresql://lab@h/d", "tiny")
    assert not is_address("campaigns/postgresql")
    with pytest.raises(StoreError, match="names a database, not a campaign in it"):
        split_address(URL)


def test_a_schema_has_the_folders_name_behind_that_of_the_campaign_around(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    assert schema_name(folder, URL) == "tiny"
    write_pointer(folder, Location("campaign", URL, "tiny"))
    assert schema_name(folder / "control", URL) == "tiny/control"
    assert schema_name(folder / "explanation" / "device", URL) == "tiny/explanation/device"
    assert schema_name(folder / "control", "postgresql://h/other") == "control"
    assert schema_name(tmp_path / "pg_mine", URL) == "_pg_mine"
    assert schema_name(tmp_path / 'a "b" é', URL) == "a__b___"
    one, other = (schema_name(tmp_path / (100 * "x" + end), URL) for end in "ab")
    assert one != other
    assert len(one) == len(other) == 63


@pytest.mark.parametrize("text", ["{", "[]", '{"url": 5}', '{"kind": "x", "url": "", "name": "n"}'])
def test_a_pointer_of_other_contents_is_named(tmp_path, text):
    (tmp_path / "store.json").write_text(text)
    assert is_campaign(tmp_path)
    for use in (Store.open, CampaignLock.is_held, lambda folder: CampaignLock(folder).acquire()):
        with pytest.raises(StoreError, match=r"store\.json can't be read .*; restore it"):
            use(tmp_path)


def test_a_pointer_with_a_password_is_refused(tmp_path):
    about = {"kind": "campaign", "url": "postgresql://u:secret@h/d", "name": "x", "samples": None}
    (tmp_path / "store.json").write_text(json.dumps(about))
    with pytest.raises(StoreError, match="has a password"):
        read_pointer(tmp_path)


def test_a_path_is_a_folder(tmp_path):
    assert folder_at(str(tmp_path)) == tmp_path
