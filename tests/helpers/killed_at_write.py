"""Runs a campaign whose process ends at once after a number of writes to its store: ``python ... HOME KILL``.

HOME holds ``campaign.json``, the configuration; the campaign goes to HOME/torn and is resumed where it is
there already. KILL is the number of the write after which the process ends; 0: never. Prints the number
of writes.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

import edgeflare.campaign.telemetry
from edgeflare import config_from, resume_campaign, run_campaign
from edgeflare.store.database import Database

KILLED = 99
_plain = Database.writing


def main() -> None:
    home, kill = Path(sys.argv[1]), int(sys.argv[2])
    writes = 0

    @contextmanager
    def writing(self: Database) -> Iterator[Connection]:
        nonlocal writes
        with _plain(self) as connection:
            yield connection
        writes += 1
        if writes == kill:
            os._exit(KILLED)

    Database.writing = writing  # type: ignore[method-assign]
    # The devices' minutes are written at the end only, so that each run writes as often as the other.
    edgeflare.campaign.telemetry._AFTER_THE_MINUTE_S = 3600.0
    folder = home / "torn"
    if not (
        folder / "campaign.sqlite"
    ).exists():  # interrupted before it began: begin anew, as a user would
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        resume_campaign(folder)
    else:
        values = json.loads((home / "campaign.json").read_text())
        run_campaign(config_from({**values, "out": folder}, "test"))
    print(writes)


if __name__ == "__main__":
    main()
