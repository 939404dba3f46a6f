"""How a phone is named: adb:// texts and inventory entries."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.devices.inventory import (
    Device,
    adb_url,
    load_inventory,
    phone_from_url,
    resolve_device,
)
from edgeflare.devices.transports.ssh.endpoint import alias_of
from edgeflare.errors import InventoryError

LINE = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF).filter(str.isprintable), min_size=1
)
NAME = LINE.filter(
    lambda text: (
        not text.startswith("-") and not any(c.isspace() or c in "'\"`$\\;&<>|(){}" for c in text)
    )
)


@pytest.mark.parametrize(
    ("text", "serial", "user", "shell"),
    [
        ("adb://R58M", "R58M", None, False),
        ("adb://R58M/", "R58M", None, False),
        ("adb://", None, None, False),
        ("adb://u0_a1@R58M", "R58M", "u0_a1", False),
        ("adb://192.168.1.5:37215", "192.168.1.5:37215", None, False),
        (
            "adb://adb-R5%20(2)._adb-tls-connect._tcp",
            "adb-R5 (2)._adb-tls-connect._tcp",
            None,
            False,
        ),
        ("adb://R58M?shell", "R58M", None, True),
        ("adb://?shell", None, None, True),
    ],
)
def test_a_phone_on_the_command_line(text, serial, user, shell) -> None:
    device = resolve_device(text, {})
    assert (device.transport, device.host) == ("adb", None)
    assert (device.serial, device.user, device.adb_shell) == (serial, user, shell)
    assert device.name == ("adb://R58M" if text == "adb://R58M/" else text)


@given(serial=st.none() | LINE, user=st.none() | NAME)
def test_a_text_names_the_phone_it_was_made_of(serial: str | None, user: str | None) -> None:
    device = phone_from_url(adb_url(serial, user))
    assert (device.serial, device.user) == (serial, user)
    assert phone_from_url(device.address) == device.model_copy(update={"name": device.address})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("adb:R58M", "device"),
        ("adb://@R58M", "write adb://SERIAL"),
        ("adb://R58M/x", "write adb://SERIAL"),
        ("adb://R58M?shel", "write adb://SERIAL"),
        ("adb://me@R58M?shell", "meaning .*`adb_shell`"),
        ("adb://R58M%0A", "serial: must"),
    ],
)
def test_mistakes_in_a_text(text: str, sentence: str) -> None:
    with pytest.raises(InventoryError, match=sentence):
        resolve_device(text, {})


def test_an_unknown_name_reports_phones() -> None:
    with pytest.raises(InventoryError, match="adb://SERIAL"):
        resolve_device("R58M", {})


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return tmp_path / "devices.toml"


def test_a_phone_in_the_inventory(inventory: Path) -> None:
    inventory.write_text(
        '[devices.phone]\ntransport = "adb"\nserial = "R58M"\nuser = "u0_a1"\nkey = "/k"\n'
        'python = "proot-distro login debian -- python3"\n'
        '[devices.any]\ntransport = "adb"\n'
        '[devices.bare]\ntransport = "adb"\nadb_shell = true\npython = "/data/local/tmp/python3"\n'
    )
    devices = load_inventory(inventory)
    phone, bare = devices["phone"], devices["bare"]
    assert (phone.serial, phone.user, phone.key, phone.port) == ("R58M", "u0_a1", Path("/k"), None)
    assert "proot-distro login debian" in phone.python
    assert [one.address for one in (phone, devices["any"], bare)] == [
        "adb://u0_a1@R58M",
        "adb://",
        "adb://?shell",
    ]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ('transport = "adb"\nhost = "h"', "`host`"),
        ('host = "h"\nserial = "R58M"', "`serial`"),
        ('host = "h"\nadb_shell = true', "`adb_shell`"),
        ('transport = "local"\nserial = "R"', "`serial`"),
        ('transport = "adb"\nadb_shell = true\nport = 1', "`port`"),
        ('transport = "adb"\nserial = " R"', "3: .*serial"),
    ],
)
def test_mistakes_in_the_inventory(inventory: Path, lines: str, sentence: str) -> None:
    inventory.write_text(f"[devices.phone]\n{lines}\n")
    with pytest.raises(InventoryError, match=sentence):
        load_inventory(inventory)


def test_addresses_of_other_devices() -> None:
    assert (
        Device(name="a", host="10.0.0.7", port=2222, user="pi").address == "ssh://pi@10.0.0.7:2222"
    )
    assert Device(name="b", transport="local").address == "this machine"


def test_a_serial_makes_one_word_of_known_hosts() -> None:
    assert alias_of("R58M") == "adb-R58M"
    assert alias_of("192.168.1.5:37215") == "adb-192.168.1.5:37215"
    assert alias_of("adb-R5 (2)._adb,*") == "adb-adb-R5__2_._adb__"
