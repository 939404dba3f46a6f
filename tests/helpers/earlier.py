"""Campaigns and corpora that earlier versions of EdgeFlare wrote, and what those versions said of them."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).resolve().parents[1] / "data" / "campaigns"
VERSIONS = tuple(sorted(path.parent.name for path in DATA.glob("*/expected.json")))


class Earlier(NamedTuple):
    """A copy of what one version wrote: a campaign, and a corpus made of it and of a replay."""

    campaign: Path
    corpus: Path
    triggers: dict[str, str]
    show: dict[str, Any]
    corpus_show: dict[str, Any]


def copy_of(version: str, to: Path) -> Earlier:
    """Copy what a version wrote into the folder `to`."""
    for kind in ("campaign", "corpus"):
        shutil.copytree(DATA / version / kind, to / kind)
    said = json.loads((DATA / version / "expected.json").read_text())
    return Earlier(to / "campaign", to / "corpus", said["triggers"], said["show"], said["corpus"])
