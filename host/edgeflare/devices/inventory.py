"""The device inventory: a TOML file with one table a device, ``[devices.pi4]``."""

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from edgeflare import plugins, toml
from edgeflare.devices.adb_url import phone_from_url
from edgeflare.devices.device import LOCAL, Device, device_from_url
from edgeflare.devices.managed import with_managed
from edgeflare.devices.runtimes import DeviceOptions
from edgeflare.errors import InventoryError
from edgeflare.text import clean_text, plain_problem

__all__ = ["Device", "DeviceOptions", "find_inventory", "load_inventory", "resolve_device"]


def load_inventory(path: Path | None = None) -> dict[str, Device]:
    """Return the devices by name from this file, in its order, then the virtual boards.

    A name in the file wins over a board's. Without a path: ``devices.toml`` in the current folder,
    else ``edgeflare/devices.toml`` in the user's configuration folder ($XDG_CONFIG_HOME, else
    ~/.config), else no file.
    Raises InventoryError, naming file, line and key.
    """
    path = find_inventory(path)
    return with_managed({} if path is None else _read_inventory(path), _read_inventory)


def _read_inventory(path: Path) -> dict[str, Device]:
    try:
        text = toml.read(path)
        data = toml.loads(text)
    except FileNotFoundError as error:
        raise InventoryError(f"there is no device inventory at {path}") from error
    except OSError as error:
        raise InventoryError(f"can't read the inventory {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InventoryError(f"the inventory {path} is not UTF-8 text") from error
    except ValueError as error:
        raise InventoryError(f"the inventory {path} is not valid TOML: {error}") from error
    for key in data:
        if key != "devices":
            raise InventoryError(
                f"{_place(path, text, None, key)}: unknown key `{clean_text(key)}`; "
                "each device is a table such as [devices.pi4]"
            )
    tables = data.get("devices", {})
    if not isinstance(tables, dict):
        raise InventoryError(f"{path}: `devices` must hold tables such as [devices.pi4]")
    return {name: _read_device(path, text, name, table) for name, table in tables.items()}


def find_inventory(path: Path | None = None) -> Path | None:
    """Return where the inventory is, absolute: at this path, else in the usual places, else nowhere."""
    if path is None:
        path = next((candidate for candidate in _usual_places() if candidate.is_file()), None)
    return path and path.absolute()


def resolve_device(text: str, inventory: Mapping[str, Device]) -> Device:
    """Return the device that the user named.

    ``local``, a name of the inventory (which wins), ``ssh://[user@]host[:port]``, or
    ``adb://[user@][serial]``, or ``scheme://...`` of a transport plug-in. Raises InventoryError with the nearest name.
    """
    if text in inventory:
        return inventory[text]
    if text == "local":
        return LOCAL
    if text.startswith("ssh://"):
        return device_from_url(text)
    if text.startswith("adb://"):
        return phone_from_url(text)
    scheme, separator, _ = text.partition("://")
    if separator and scheme in plugins.names("transport"):
        try:
            return Device(name=text, transport=scheme, url=text)
        except ValidationError as error:
            raise InventoryError(f"{text!r} {plain_problem(error.errors()[0]['msg'])}") from error
    known = list(dict.fromkeys(["local", *inventory]))
    if text == "virtual":
        raise InventoryError(
            "there is no virtual board yet; `edgeflare devices virtual up` builds and boots one"
        )
    raise InventoryError(
        f"no device is called {text!r}{_nearest(text, known)}; known are {', '.join(known)}, "
        "and any SSH host as ssh://[user@]host[:port], any phone on adb as adb://SERIAL"
    )


def _usual_places() -> tuple[Path, Path]:
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
    return Path("devices.toml"), folder / "edgeflare" / "devices.toml"


def _read_device(path: Path, text: str, name: str, table: object) -> Device:
    where = _place(path, text, name, None)
    if not isinstance(table, dict):
        shown = clean_text(name)
        raise InventoryError(f"{where}: `{shown}` must be a table, [devices.{shown}]")
    if "name" in table:
        raise InventoryError(
            f"{_place(path, text, name, 'name')}: a device's name stands in its header, "
            f"[devices.{name}]; remove `name`"
        )
    try:
        return Device.model_validate({"name": name, **table})
    except ValidationError as error:
        problem = error.errors()[0]
        raise InventoryError(_sentence(path, text, name, problem)) from error


def _sentence(path: Path, text: str, name: str, problem: Any) -> str:
    keys = [clean_text(str(part)) for part in problem["loc"]]
    where = header = _place(path, text, name, None)
    for key in keys:  # the innermost that has a line of its own
        found = _place(path, text, name, key)
        where = where if found == header else found
    if problem["type"] == "extra_forbidden":
        nested = len(keys) > 1
        fields = DeviceOptions.__annotations__ if nested else Device.model_fields
        allowed = [field for field in fields if field != "name"]
        return (
            f"{where}: device {name!r} has an unknown key `{'.'.join(keys)}`"
            f"{_nearest(keys[-1], allowed)}; allowed are {', '.join(allowed)}"
        )
    return f"{where}: device {name!r}: {'.'.join(keys)}{': ' if keys else ''}{plain_problem(problem['msg'])}"


def _nearest(text: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(text, list(names), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _place(path: Path, text: str, table: str | None, key: str | None) -> str:
    """Return ``file, line n`` where the key, or else its table, is found by eye; else the file."""
    found = None
    inside = table is None
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[([^\]]*)\]", line)
        if header:
            names = [part.strip().strip("\"'") for part in header[1].split(".")]
            inside = table is not None and names[:2] == ["devices", table]
            if inside or (table is None and names[0] == key):
                found = found or number
        elif inside and key is not None:
            before, equals, _ = line.partition("=")
            if equals and before.strip().strip("\"'").split(".")[-1] == key:
                return f"{path}, line {number}"
    return str(path) if found is None else f"{path}, line {found}"
