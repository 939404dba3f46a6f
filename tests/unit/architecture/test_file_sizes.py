from collections import Counter
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
MOST_LINES = 600
MOST_FILES = 18


def is_alias(file: Path) -> bool:
    """Whether a file has nothing but the names of another package, which were here once."""
    code = file.with_suffix(".py")
    return code.is_file() and "_internal.moved import names_of" in code.read_text(encoding="utf-8")


def test_no_file_is_too_long_to_read() -> None:
    lengths = {
        file.relative_to(PROJECT).as_posix(): len(file.read_text(encoding="utf-8").splitlines())
        for folder in ("agent", "deploy", "host", "mutators", "tests")
        for file in (PROJECT / folder).rglob("*.py")
    }
    assert len(lengths) > 50
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_folder_holds_more_files_than_a_reader_can_name() -> None:
    files = Counter(
        file.parent.relative_to(PROJECT).as_posix()
        for folder in ("agent", "deploy", "host", "mutators", "tests")
        for file in (PROJECT / folder).rglob("*.py*")
        if file.suffix in {".py", ".pyi"} and not is_alias(file)
    )
    del files["tests/helpers"]  # one folder, since each is imported by its bare name
    assert len(files) > 20
    assert {name: count for name, count in files.items() if count > MOST_FILES} == {}
