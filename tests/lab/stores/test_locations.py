"""Texts that name a database, a place in it, and the folder that stands for it."""

import json
import socket

import pytest

from edgeflare._internal.files import new_folder_name
from edgeflare.errors import StoreError
from edgeflare.store import CampaignLock, Store, folder_at
from edgeflare.store.creation import remove_folder
from edgeflare.store.location import (
    LONGEST_NAME,
    Location,
    database_url,
    deletion_text,
    is_address,
    is_campaign,
    read_pointer,
    schema_name,
    split_address,
    write_pointer,
)
from edgeflare.store.servers import add_database

URL = "postgresql://lab@db.example:5433/edgeflare?sslmode=verify-full"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "postgresql://user@host/database"),
        ("mysql://u@h/d", "PostgreSQL database"),
        ("sqlite:///x.db", "PostgreSQL database"),
        ("postgresql+asyncpg://u@h/d", "PostgreSQL database"),
        ("postgres://u@h/d", "PostgreSQL database"),
        ("postgresql://u:secret@h/d", "password"),
        ("postgresql://u@h/d?password=secret", "password"),
        ("postgresql://u@h", "database"),
        ("postgresql://u@h:port/d", "the URL"),
        ("postgresql://lab:secret/d", "the URL"),
        ("postgresql://u@h/d/name", "database alone"),
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
    with pytest.raises(StoreError, match="a database"):
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
    one, other = (schema_name(folder / (100 * "x" + end), URL) for end in "ab")
    assert one != other
    assert one.startswith("tiny/xxx")
    assert len(one) == len(other) == 63


def test_a_new_campaigns_name_leaves_room_for_its_parts(tmp_path):
    longest = new_folder_name("campaigns", 40 * "x", LONGEST_NAME).name
    assert schema_name(tmp_path / longest, URL) == longest
    part = "/explanation/device-1a2b3c4d"
    assert len(longest + part) <= 63
    with pytest.raises(StoreError, match="has 35"):
        schema_name(tmp_path / (36 * "x"), URL)
    folder = tmp_path / "deep"
    folder.mkdir()
    write_pointer(folder, Location("campaign", URL, f"history/{55 * 'x'}"))
    one, other = (schema_name(folder / name, URL) for name in ("control", "shrunk"))
    assert one != other
    assert one[:54] == other[:54] == f"history/{46 * 'x'}"
    assert len(one) == 63


def test_what_is_to_be_deleted_names_the_schemas(tmp_path):
    assert deletion_text(tmp_path / "c" / "shrunk") == f"{tmp_path}/c/shrunk"
    (tmp_path / "c").mkdir()
    write_pointer(tmp_path / "c", Location("campaign", URL, "c"))
    assert "c/shrunk and c/shrunk/" in deletion_text(tmp_path / "c" / "shrunk")


def test_pointers_of_other_programs_are_ignored(tmp_path):
    for text in ("[]", "5", '{"url": 5}', '{"stores": ["Oxford Street"]}'):
        (tmp_path / "store.json").write_text(text)
        assert read_pointer(tmp_path) is None
        assert not is_campaign(tmp_path)
    for text in ("{", '{"kind": "x", "url": "", "name": "n"}', "[]"):
        (tmp_path / "store.json").write_text(text)
        assert schema_name(tmp_path / "c", URL) == "c"


@pytest.mark.parametrize("parameter", ["options=-csearch_path=x", "passfile=x", "hostaddr=1.2.3.4"])
def test_parameters_that_a_url_can_not_have(parameter):
    with pytest.raises(StoreError, match="URL's parameters"):
        database_url(f"postgresql://u@h/d?{parameter}")


def test_a_database_that_the_user_never_named_is_not_connected_to(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"postgresql://u@127.0.0.1:{server.getsockname()[1]}/d?connect_timeout=2"
        write_pointer(tmp_path, Location("campaign", url, "c"))
        for use in (Store.open, CampaignLock.is_held, remove_folder):
            with pytest.raises(StoreError, match=r"once: .*/d/c"):
                use(tmp_path)
        with pytest.raises(BlockingIOError):
            server.accept()
    add_database(url)
    assert (tmp_path / "state" / "edgeflare" / "databases").read_text() == f"{url}\n"
    with pytest.raises(StoreError, match="be reached"):
        Store.open(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"kind": "x", "url": "", "name": "n"}',
        '{"kind": "campaign", "url": "", "name": "../n", "samples": "/s"}',
    ],
)
def test_a_pointer_of_other_contents_is_named(tmp_path, text):
    (tmp_path / "store.json").write_text(text)
    assert is_campaign(tmp_path)
    for use in (Store.open, CampaignLock.is_held, lambda folder: CampaignLock(folder).acquire()):
        with pytest.raises(StoreError, match=r"store\.json"):
            use(tmp_path)


def test_a_pointer_with_a_password_is_refused(tmp_path):
    about = {"kind": "campaign", "url": "postgresql://u:secret@h/d", "name": "x", "samples": None}
    (tmp_path / "store.json").write_text(json.dumps(about))
    with pytest.raises(StoreError, match="a password"):
        read_pointer(tmp_path)


def test_a_path_is_a_folder(tmp_path):
    assert folder_at(str(tmp_path)) == tmp_path
