"""The device inventory and how devices are named."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shown_numbers import numbers

from edgeflare.devices.inventory import (
    LabgridPlace,
    device_from_url,
    device_url,
    load_inventory,
    resolve_device,
)
from edgeflare.errors import InventoryError

FULL = """
[devices.pi4]
host = "10.0.0.7"
port = 2222
user = "pi"
key = "~/.ssh/pi"
python = "proot-distro login debian -- python3"
runtime = "tflite"
cache = "/data/cache"
cache_limit_mb = 100
known_hosts = "/etc/known"
ssh_config = "/etc/config"
connect_timeout_s = 2.5
[devices.pi4.options]
threads = 4
delegate = false
kernels = "reference"

[devices."nano 2"]
host = "nano"

[devices.here]
transport = "local"
"""


LABGRID = """
[devices.short]
labgrid = "pi4"
[devices.long]
user = "pi"
labgrid = { place = "pi5", coordinator = "lab:20408", priority = 2, wait_s = 600 }
[devices.stated]
host = "board"
port = 2200
[devices.stated.labgrid]
place = "pi6"
python = "~/lg/bin/python"
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="devices.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_every_field_is_read(write, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    devices = load_inventory(write(FULL))
    assert list(devices) == ["pi4", "nano 2", "here"]
    pi4 = devices["pi4"]
    assert (pi4.name, pi4.transport, pi4.host, pi4.port) == ("pi4", "ssh", "10.0.0.7", 2222)
    assert (pi4.user, pi4.key) == ("pi", Path("/home/me/.ssh/pi"))
    assert pi4.options == {"threads": 4, "delegate": False, "kernels": "reference"}
    assert (pi4.known_hosts, pi4.ssh_config) == (Path("/etc/known"), Path("/etc/config"))
    assert (pi4.cache, pi4.cache_limit_mb, pi4.connect_timeout_s) == ("/data/cache", 100, 2.5)


def test_a_place_of_labgrid_in_all_its_forms(write, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    short, long, stated = load_inventory(write(LABGRID)).values()
    assert (short.transport, short.host, short.address) == ("ssh", None, "labgrid place pi4")
    assert short.labgrid == LabgridPlace(place="pi4")
    assert (short.labgrid.priority, short.labgrid.wait_s, short.labgrid.coordinator) == (0, 0, None)
    assert (long.user, long.labgrid.coordinator) == ("pi", "lab:20408")
    assert (long.labgrid.priority, long.labgrid.wait_s) == (2, 600)
    assert stated.labgrid.python == Path("/home/me/lg/bin/python")
    assert numbers(stated.address) == "6 2200"


def test_defaults(write):
    devices = load_inventory(write(FULL))
    nano = devices["nano 2"]
    assert (nano.python, nano.cache, nano.cache_limit_mb) == ("python3", "~/.cache/edgeflare", 2048)
    assert (nano.port, nano.user, nano.key, nano.runtime, nano.options) == (None,) * 4 + ({},)
    assert nano.connect_timeout_s == 15
    assert devices["here"].python == sys.executable


def test_the_current_folder_comes_before_the_users(write, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert load_inventory() == {}
    write('[devices.home]\nhost = "a"', "home/.config/edgeflare/devices.toml")
    assert list(load_inventory()) == ["home"]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert load_inventory() == {}
    write('[devices.xdg]\nhost = "a"', "xdg/edgeflare/devices.toml")
    assert list(load_inventory()) == ["xdg"]
    write('[devices.folder]\nhost = "a"')
    assert list(load_inventory()) == ["folder"]
    assert list(load_inventory(write('[devices.given]\nhost = "a"', "x.toml"))) == ["given"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[devices.a]\nhost = "h"\n\nprot = 22', "'a' .*`prot`"),
        ('[devices.a]\nprot = 1\n[devices.b]\nhost = "h"\nport = 0', "key `prot`"),
        ('[devices.a]\nhost = "h"\nport = 70000', "device 'a'"),
        ('[devices.a]\nhost = "h"\nport = "22x"', "device 'a'"),
        ("[devices.a]\nport = 22", "'a': `host`"),
        ('[devices.a]\nhost = "h"\ntransport = "usb"', "transport: .*'adb'"),
        ('[devices.a]\ntransport = "local"\nlabgrid = "b"', "`labgrid`"),
        ('[devices.a]\ntransport = "adb"\nlabgrid = "b"', "meaning .*'adb'"),
        ('[devices.a]\nlabgrid = ""', "2: .*labgrid.place"),
        ("[devices.a]\nlabgrid = 3", "2: .*labgrid"),
        ("[devices.a]\nlabgrid = {wait_s = 1}", "2: .*labgrid.place"),
        ('[devices.a]\n[devices.a.labgrid]\nplace = "b"\nwaits = 1', "4: .*`labgrid.waits`"),
        ('[devices.a]\nlabgrid = {place = "b", wait_s = -1}', "2: .*labgrid.wait_s"),
        ('[devices.a]\ntransport = "local"\nuser = "me"', "meaning .*'local'"),
        ('[devices.a]\nhost = "h"\noptions.thread = 1', "mean 'threads'"),
        ('[devices.a]\nhost = "h"\n[devices.a.options]\nthreads = 0', "4: .*options.threads"),
        ('[devices.a]\nhost = "h"\noptions = { thread = 1 }', "mean 'threads'"),
        ('[devices.a]\nhost = "h"\noptions = {precision = "int9"}', "options.precision: .*'int8'"),
        (
            '[devices.a]\nhost = "h"\nruntime = "tflite"\noptions = {precision = "fp16"}',
            "allow_fallback, delegate",
        ),
        ('[devices.a]\nhost = "h"\nname = "b"', "line 3"),
        ('[devices.a]\nhost = "-oProxyCommand=x"', "line 2"),
        ('[devices.a]\nhost = "h"\npython = "a\\nb"', "line 3"),
        ('[devices.a]\nhost = "$(touch x)"', "line 2"),
        ('[devices.a]\nhost = "h"\nuser = "q;touch"', "line 3"),
        (f'[devices.a]\nhost = "{"h" * 64}.net"', "63 characters"),
        (f'[devices.a]\nhost = "{"h." * 200}net"', "253 characters"),
        ('[devices."a\\u001b[2J\\u202e"]\nhost = "h"', r"'a\\x1b\[2J\\u202e': name"),
        ('[devices.a]\nhost = "h"\n"x\\u001b[2J" = 1', "key `x`"),
        ('[devices]\n"a\\u001b[2J" = 1', "`a` must"),
        ('"a\\u001b[2J" = 1', "key `a`"),
        ('[device.a]\nhost = "h"', r"`device`; .*\[devices.pi4\]"),
        ("[devices]\na = 1", "`a` must"),
        ("devices = 1", r"\[devices.pi4\]"),
        ("[devices.a\n", "line 1"),
    ],
)
def test_mistakes_are_named_with_place_and_remedy(write, text, sentence):
    path = write(text)
    with pytest.raises(InventoryError, match=sentence) as caught:
        load_inventory(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InventoryError, match="device inventory"):
        load_inventory(tmp_path / "absent.toml")
    with pytest.raises(InventoryError, match="can't read"):
        load_inventory(tmp_path)
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InventoryError, match="not UTF-8"):
        load_inventory(tmp_path / "bad.toml")


def test_resolve_by_name_local_and_nearest(write):
    devices = load_inventory(write(FULL))
    assert resolve_device("pi4", devices) is devices["pi4"]
    assert resolve_device("local", devices).transport == "local"
    with pytest.raises(InventoryError, match=r"'pi4'\?\); known"):
        resolve_device("pi5", devices)
    with pytest.raises(InventoryError, match="called 'pi4'"):
        resolve_device("pi4", {})
    with pytest.raises(InventoryError, match="local, pi4"):
        resolve_device("x", {"local": devices["pi4"], "pi4": devices["pi4"]})
    with pytest.raises(InventoryError, match="`edgeflare devices"):
        resolve_device("virtual", devices)


@pytest.mark.parametrize(
    ("text", "host", "port", "user"),
    [
        ("ssh://pi4", "pi4", None, None),
        ("ssh://pi@10.0.0.7:2222/", "10.0.0.7", 2222, "pi"),
        ("ssh://pi@[fe80::1]:22", "fe80::1", 22, "pi"),
        ("ssh://[::1]", "::1", None, None),
        ("ssh://me%40work@host", "host", None, "me@work"),
        ("ssh://[fe80::1%25eth0]", "fe80::1%eth0", None, None),
    ],
)
def test_ssh_addresses(text, host, port, user):
    device = resolve_device(text, {})
    assert (device.transport, device.host, device.port, device.user) == ("ssh", host, port, user)
    assert device.name == text.rstrip("/")


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh://@host",
        "ssh://user@",
        "ssh://host:",
        "ssh://host:0",
        "ssh://host:65536",
        "ssh://host:22x",
        "ssh://host:²",
        "ssh://::1",
        "ssh://[::1",
        "ssh://host/path",
        "ssh://user:secret@host",
        "ssh://-oProxyCommand=x",
        "ssh://%2doProxyCommand=x",
        "ssh://a%20b",
        "ssh://$(touch${IFS}x)@h",
        "ssh://q;touch%20x@h",
        "ssh://h;x",
        "ssh://x@h%0atouch",
        *(f"ssh://a%{ord(c):02x}b" for c in "'\"`$\\;&<>|(){}\x07\x7f"),
        *(f"ssh://a%{ord(c):02x}b@h" for c in "'\"`$\\;&<>|(){}\x07\x7f"),
        f"ssh://{'h' * 64}",
        "ssh://a..b",
    ],
)
def test_what_is_no_ssh_address(text):
    with pytest.raises(InventoryError, match=r"SSH address|a port is a number"):
        resolve_device(text, {})


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1).filter(
    lambda text: (
        text.isprintable() and not text.startswith("-") and not set(text) & set("'\"`$\\;&<>|(){}")
    )
)


def is_host_name(text):
    try:
        return len(text) <= 253 and text.encode("idna") is not None
    except UnicodeError:
        return False


@given(
    host=names.filter(is_host_name), port=st.none() | st.integers(1, 65535), user=st.none() | names
)
def test_addresses_come_back_as_they_were_written(host, port, user):
    device = device_from_url(device_url(host, port, user))
    assert (device.host, device.port, device.user) == (host, port, user)


@settings(max_examples=40)
@given(st.text())
def test_any_text_is_a_device_or_one_clear_sentence(text):
    assert read_or_refuse(f"ssh://{text}")


def read_or_refuse(text):
    try:
        return device_from_url(text).host
    except InventoryError as error:
        return "\n" not in str(error)
