from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
MOST_LINES = 600


def test_no_file_is_too_long_to_read() -> None:
    lengths = {
        file.relative_to(PROJECT).as_posix(): len(file.read_text(encoding="utf-8").splitlines())
        for folder in ("agent", "deploy", "host", "mutators", "tests")
        for file in (PROJECT / folder).rglob("*.py")
    }
    assert len(lengths) > 50
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}
