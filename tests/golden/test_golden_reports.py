"""The reports of tiny campaigns, in each format, are those of `tests/golden`."""

import difflib
import shutil
from pathlib import Path

import pytest
from golden_campaigns import CAMPAIGNS

GOLDEN = Path(__file__).resolve().parent
UPDATE = 'python -m pytest -m "" tests/golden --update-golden'
THREE_NIGHTS = pytest.param("night", marks=pytest.mark.extended)


@pytest.mark.parametrize("name", [*(name for name in CAMPAIGNS if name != "night"), THREE_NIGHTS])
def test_reports_are_as_they_were(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    folder = GOLDEN / name
    now = CAMPAIGNS[name](tmp_path).rendered()
    if pytestconfig.getoption("--update-golden"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file, text in now.items():
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
    before = {one.name: one.read_text(encoding="utf-8") for one in folder.glob("*.*")}
    assert before.keys() == now.keys(), f"other formats than in {folder}; to write them: {UPDATE}"
    differences = [
        line
        for file in sorted(now)
        for line in difflib.unified_diff(
            before[file].splitlines(),
            now[file].splitlines(),
            f"tests/golden/{name}/{file}",
            f"{name}/{file} now",
            lineterm="",
        )
    ]
    if differences:
        shown = "\n".join(differences[:200])
        pytest.fail(f"{shown}\nIf this is wanted: {UPDATE}", pytrace=False)
