"""Runs a campaign or a bench whose process ends after a number of writes to its campaigns' stores.

``python killed_at_write.py HOME KILL``: a campaign by HOME/campaign.json, in HOME/torn.
``python killed_at_write.py SUITE FOLDER KILL``: a bench. Either is resumed where its folder is there already.
KILL is the number of the write after which the process ends at once; 0: never. Prints the number of writes.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

import edgeflare.campaign.fleet
from edgeflare import config_from, resume_campaign, run_campaign
from edgeflare.store.database import Database
from edgeflare_bench import load_suite, resume_bench, run_bench

KILLED = 99
_plain = Database.writing


def main() -> None:
    *what, kill = sys.argv[1:]
    writes = 0

    @contextmanager
    def writing(self: Database) -> Iterator[Connection]:
        nonlocal writes
        with _plain(self) as connection:
            yield connection
        writes += 1
        if writes == int(kill):
            os._exit(KILLED)

    Database.writing = writing  # type: ignore[method-assign]
    # The devices' minutes are written at the end only, so that each run writes as often as the other.
    edgeflare.campaign.fleet._DELAY_S = 3600.0
    if len(what) == 1:
        run_or_resume_campaign(Path(what[0]))
    else:
        run_or_resume_bench(what[0], Path(what[1]))
    print(writes)


def run_or_resume_campaign(home: Path) -> None:
    folder = home / "torn"
    if (folder / "campaign.sqlite").exists():
        resume_campaign(folder)
        return
    shutil.rmtree(folder, ignore_errors=True)  # interrupted before it began: as a user would
    values = json.loads((home / "campaign.json").read_text())
    run_campaign(config_from({**values, "out": folder}, "test"))


def run_or_resume_bench(suite: str, folder: Path) -> None:
    if (folder / "bench.json").exists():
        resume_bench(folder)
    else:
        run_bench(load_suite(suite), folder)


if __name__ == "__main__":
    main()
