"""Runs a bench whose process is killed (SIGKILL) after a number of writes to its campaigns' stores.

``python killed_bench.py SUITE FOLDER WRITES``: the bench is resumed where FOLDER holds one already;
WRITES 0 kills never.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

from edgeflare.bench import load_suite, resume_bench, run_bench
from edgeflare.store.database import Database

_plain = Database.writing


def main() -> None:
    suite, folder, last = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    writes = 0

    @contextmanager
    def writing(self: Database) -> Iterator[Connection]:
        nonlocal writes
        with _plain(self) as connection:
            yield connection
        writes += 1
        if writes == last:
            os.kill(os.getpid(), signal.SIGKILL)

    Database.writing = writing  # type: ignore[method-assign]
    if (folder / "bench.json").exists():
        resume_bench(folder)
    else:
        run_bench(load_suite(suite), folder)
    print(writes)


if __name__ == "__main__":
    main()
