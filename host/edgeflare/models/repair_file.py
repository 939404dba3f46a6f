"""The file of a repair: a stage that replaces a deployed model's answers on its device."""

from pathlib import Path

from edgeflare._internal.files import replacing
from edgeflare.errors import UsageError
from edgeflare_agent.errors import RequestError
from edgeflare_agent.repair import Repair, read_repair, write_repair


def load_repair(path: Path) -> Repair:
    """Return the repair in a file that `save_repair` wrote. Raises UsageError."""
    try:
        return read_repair(path)
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no repair {path}; `edgeflare repair train` or `edgeflare repair abstain` "
            "makes one"
        ) from error
    except OSError as error:
        raise UsageError(f"the repair {path} can't be read: {error}") from error
    except RequestError as error:
        raise UsageError(f"{path} is no repair that can be read: {error}") from error


def save_repair(repair: Repair, path: Path) -> None:
    """Write a repair, atomically; the same repair gives the same bytes. Raises OSError."""
    with replacing(path) as file:
        write_repair(repair, file)
