"""Changes to what a campaign has stored, beneath the store: what earlier versions or damage left."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def changed_result(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Give the JSON object of the stored result of an analysis; what is changed in it is stored."""
    with closing(sqlite3.connect(folder / "campaign.sqlite")) as connection, connection:
        (text,) = connection.execute(
            "SELECT result FROM analyses WHERE name = ? AND result IS NOT NULL", (name,)
        ).fetchone()  # a run that ended with an error has none
        result = json.loads(text)
        yield result
        connection.execute(
            "UPDATE analyses SET result = ? WHERE name = ? AND result IS NOT NULL",
            (json.dumps(result), name),
        )


def change(database: Path, *statements: str, values: Sequence[Any] = ()) -> None:
    """Change a database's rows, whatever its tables allow; `values` are those of each statement."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement in statements:
            connection.execute(statement, values)
