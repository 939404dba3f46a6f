"""What lower layers call by its dotted name, ``module:function``, is there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import pytest

import edgeflare

_DOTTED = re.compile(r"edgeflare[\w.]*:\w+")


def dotted_names() -> Iterator[str]:
    """Yield each dotted name in the sources, and those that `worded` is called with."""
    for path in Path(edgeflare.__file__).parents[1].glob("edgeflare*/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "worded":
                yield f"edgeflare.words.{ast.literal_eval(node.args[0])}"
            elif isinstance(node, ast.Constant) and _DOTTED.fullmatch(str(node.value)):
                yield str(node.value)


@pytest.mark.parametrize("name", sorted({*dotted_names()}))
def test_what_is_called_by_its_name_is_there(name: str) -> None:
    assert callable(resolve_name(name))
