"""The folder of a comparison, and the resolution of paths to candidates."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgeflare.campaign.batch import description
from edgeflare.campaign.measures import check_level
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.store.database import DATABASE_NAME
from edgeflare.store.lock import LOCK_NAMES

COMPARISON_NAME = "comparison.json"


def candidates_named(paths: Sequence[Path], *, level: float = 0.95) -> tuple[Path, ...]:
    """Return the model files and campaign folders that these paths stand for, in their order.

    The folder of a comparison stands for its candidates' campaigns; files of its own beside them, which a
    shell's ``*`` names, too, stand for nothing. Reads only, so that what can't be compared is known before anything
    is run: raises UsageError for a `level` outside (0, 1) and for fewer than two candidates, StoreError for
    a folder that is neither a campaign nor a comparison.
    """
    check_level(level)
    found = [one for path in paths for one in _stands_for(Path(path).expanduser())]
    if len(found) < 2:
        raise UsageError(
            "compare needs two candidates at least: model files, campaigns' folders, or a comparison's"
        )
    return tuple(found)


def read_comparison(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of a comparison, and its candidates' files by name. Raises StoreError."""
    with description(path, "run the comparison anew in another folder") as said:
        return dict(said["settings"]), {str(k): str(v) for k, v in said["candidates"].items()}


def _stands_for(path: Path) -> list[Path]:
    if not path.is_dir():
        own = path.name in (COMPARISON_NAME, *LOCK_NAMES)
        return [] if own and (path.parent / COMPARISON_NAME).is_file() else [path]
    if (path / COMPARISON_NAME).is_file() and not (path / DATABASE_NAME).is_file():
        _, candidates = read_comparison(path / COMPARISON_NAME)
        begun = [path / name for name in candidates if (path / name / DATABASE_NAME).is_file()]
        if not begun:
            raise UsageError(f"{path} is a comparison in which no candidate's campaign has begun")
        return begun
    with Store.open(path):  # raises where it is no campaign
        return [path]
