"""What is stated of a speech recogniser whose file doesn't tell how its outputs become text."""

import json
from pathlib import Path

import pytest

from edgeflare.errors import UsageError
from edgeflare.models import DecoderOptions
from edgeflare_agent.wire import MAX_HEADER


def words_in(path: Path, content: str) -> tuple[str, ...]:
    path.write_text(content, encoding="utf-8")
    return DecoderOptions(vocabulary=path).decoder().vocabulary


def test_a_text_file_has_a_token_a_line(tmp_path: Path) -> None:
    assert words_in(tmp_path / "v.txt", "<b>\na\n \n\u00e9\n") == ("<b>", "a", " ", "\u00e9")
    assert words_in(tmp_path / "v.txt", "\na") == ("", "a")


def test_lines_and_marks_of_other_systems(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    assert DecoderOptions(vocabulary=tmp_path / "v.txt").decoder().vocabulary == ("a", "b")


def test_a_json_file_lists_or_numbers_its_tokens(tmp_path: Path) -> None:
    assert words_in(tmp_path / "v.json", '["<b>", "a"]') == ("<b>", "a")
    assert words_in(tmp_path / "v.json", '{"a": 1, "<b>": 0}') == ("<b>", "a")


@pytest.mark.parametrize(
    "content", ["{", '{"a": 1}', '{"a": true, "b": false}', "[1]", "3", "[" * 100_000, '{"a": []}']
)
def test_json_that_is_no_vocabulary(tmp_path: Path, content: str) -> None:
    with pytest.raises(UsageError, match=r"vocabulary .*v\.json"):
        words_in(tmp_path / "v.json", content)


def test_a_missing_or_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.txt"):
        DecoderOptions(vocabulary=tmp_path / "none.txt").decoder()
    with pytest.raises(UsageError, match=r"v\.txt: decoder"):
        words_in(tmp_path / "v.txt", "")


def test_a_blank_beyond_the_vocabulary_is_reported_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("a\nb\n")
    with pytest.raises(UsageError, match=r"v\.txt: decoder"):
        DecoderOptions(vocabulary=tmp_path / "v.txt", blank=2).decoder()


def test_a_large_vocabulary_travels_and_a_too_large_one_is_refused(tmp_path: Path) -> None:
    large = words_in(tmp_path / "v.txt", "\n".join(f"\u0120word{n}" for n in range(50_000)))
    assert len(json.dumps(large)) < MAX_HEADER - 1000
    with pytest.raises(UsageError, match=r"device \(90000"):
        words_in(tmp_path / "v.txt", "\n".join(f"\u0120word{n}" for n in range(90_000)))


def test_a_symbol_for_a_space_that_no_token_has(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("_\na\n|\n")
    assert DecoderOptions(vocabulary=tmp_path / "v.txt", space="|").decoder().space == "|"
    with pytest.raises(UsageError, match=r"vocabulary .*v\.txt"):
        DecoderOptions(vocabulary=tmp_path / "v.txt", space="zz").decoder()
