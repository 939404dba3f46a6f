"""Hand-written pages of the reference have every name that programs read."""

import json
import re
from pathlib import Path

import pytest

from edgeflare import errors
from edgeflare.types import Status

PROJECT = Path(__file__).resolve().parents[3]
REFERENCE = PROJECT / "docs" / "reference"
FORMATS = json.loads((PROJECT / "tests" / "data" / "formats.json").read_text("utf-8"))
WITH_KEYS = (
    "run --json", "status --json", "live.json", "report --format json", "report --format csv", "triggers.jsonl",
    "replay --json", "corpus add --json", "corpus show --json", "devices check --json", "campaign.lock.json",
    "campaign.sqlite", "corpus.sqlite",
)  # fmt: skip


def named(page: str) -> set[str]:
    """Return the names in code spans of a page."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    return set(re.findall(r"(?<=`)[^`\n]+(?=`)", text))


@pytest.mark.parametrize("name", WITH_KEYS)
def test_the_page_of_files_has_every_table_key_and_column(name: str) -> None:
    missing = set(FORMATS[name]) - named("campaign-folder.md")
    assert sorted(missing) == []


def test_the_page_of_files_has_every_status() -> None:
    assert {status.value for status in Status} <= named("campaign-folder.md")


def test_the_page_of_exit_codes_has_every_error_below_its_base() -> None:
    text = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:· )*)`(\w+)` \| (\d+) \|", text, re.MULTILINE)
    above: list[str] = []
    found = {}
    for dots, name, code in rows:
        del above[len(dots) // 2 :]
        found[name] = (int(code), above[-1] if above else "Exception")
        above.append(name)
    assert found == {
        name: (one.exit_code, one.__base__.__name__)
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.EdgeFlareError)
    }
