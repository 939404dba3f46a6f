"""Naming a phone on the command line: ``adb://SERIAL``."""

import re
from urllib.parse import unquote

from pydantic import ValidationError

from edgeflare.devices.device import Device
from edgeflare.errors import InventoryError
from edgeflare.text import first_problem

_URL = re.compile(r"adb://(?:(?P<user>[^@/?]*)@)?(?P<serial>[^/?@]*)/?(?:\?(?P<way>[^?]*))?")


def phone_from_url(text: str) -> Device:
    """Return the phone that ``adb://[user@][serial][?shell]`` names.

    Without a serial: the only one that is attached. ``%20`` and the like are decoded. With ``?shell``
    through adb's own shell. Raises InventoryError.
    """
    match = _URL.fullmatch(text)
    if match is None or match["user"] == "" or match["way"] not in (None, "shell"):
        raise InventoryError(
            f"{text!r} does not name a phone; write adb://SERIAL as `adb devices` lists it, adb:// "
            "where only one is attached, and ?shell behind it to use adb's shell instead of SSH"
        )
    fields = {
        "name": text if text.endswith("//") else text.rstrip("/"),
        "transport": "adb",
        "serial": unquote(match["serial"]) or None,
        "user": None if match["user"] is None else unquote(match["user"]),
        "adb_shell": match["way"] == "shell",
    }
    try:
        return Device.model_validate(fields)
    except ValidationError as error:
        raise InventoryError(f"{text!r} does not name a phone: {first_problem(error)}") from error
