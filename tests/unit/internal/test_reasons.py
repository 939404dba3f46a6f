"""Why a file can't be read is said in our words: a library's advice to its own users is none for ours."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare._internal.text import reason
from edgeflare.answers.outputs import load_repair
from edgeflare.errors import EdgeFlareError
from edgeflare.seeds import load_label_mapping, open_seeds
from edgeflare.strategies import build_strategy
from edgeflare.strategies.shrink import ShrinkOptions

OF_A_LIBRARY = re.compile(
    r"allow_pickle|weights_only|'\w+' object|NoneType|argument must|not subscriptable|Expecting|"
    r"codec can't|\[Errno|zip file|unpack|buffer"
)


def raised(use: Callable[[], Any]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011  whatever a library raises
        use()
    return caught.value


def no_zip() -> None:
    zipfile.ZipFile(io.BytesIO(b"no archive"))


NOTHING: Any = None


@pytest.mark.parametrize(
    "use",
    [
        lambda: np.load(io.BytesIO(b"no array"), allow_pickle=False),
        no_zip,
        lambda: json.loads("{"),
        b"\xff".decode,
        lambda: {}["name"],
        lambda: NOTHING[0],
        lambda: float(NOTHING),
        lambda: Path("/nowhere/at/all").read_bytes(),
        lambda: list[int]().pop(),
        lambda: json.loads("[" * 100_000),
        lambda: int.from_bytes(b"a" * 999, "big") * 1.0,
    ],
)
def test_no_library_speaks(use: Callable[[], Any]) -> None:
    words = reason(raised(use))
    assert words
    assert not OF_A_LIBRARY.search(words), words


def test_what_was_missing_or_misplaced_is_named() -> None:
    assert "'name'" in reason(KeyError("name"))
    assert "2, column 1" in reason(raised(lambda: json.loads("[1,\n}")))
    for said in ("it is neither this nor that", "no folder is called pickles.d"):
        assert reason(ValueError(said)) == said
    assert reason(raised(lambda: 1 // len(""))) != reason(OverflowError())


def pickled() -> bytes:
    """An archive whose arrays hold objects."""
    stream = io.BytesIO()
    objects = np.array([{"a": 1}], object)
    np.savez(stream, images=objects, key=objects, about=objects, allow_pickle=True)
    return stream.getvalue()


CONTENTS = {
    "pickles": pickled(), "no archive": b"no archive", "half of it": pickled()[:200],
    "no text": b"\xff\xfe\x00", "no JSON": b'{"cat": ', "deep JSON": b"[" * 100_000, "nothing": b"",
}  # fmt: skip
READERS: dict[str, Callable[[Path], Any]] = {
    "repair.npz": load_repair,
    "labels.json": load_label_mapping,
    "triggers.npz": lambda path: build_strategy("shrink", {"triggers": str(path)}),
    "changes.json": lambda path: ShrinkOptions(triggers=path, changes=path).natural,
    "seeds.npz": lambda path: list(open_seeds(path, size=(4, 6), channels=1)),
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", READERS)
def test_a_file_of_another_kind_is_told_in_our_words(tmp_path, name, content) -> None:
    path = tmp_path / name
    path.write_bytes(CONTENTS[content])
    if (name, content) == ("triggers.npz", "pickles"):  # it is read a trigger at a time
        return
    with pytest.raises(EdgeFlareError, match=re.escape(str(path))) as caught:
        READERS[name](path)
    assert not OF_A_LIBRARY.search(str(caught.value)), caught.value
