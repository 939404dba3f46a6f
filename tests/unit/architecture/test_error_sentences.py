"""Error sentences begin in lower case, unless by a name, and have no final period."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]


def sentences(tree: ast.AST) -> Iterator[str]:
    """Yield the text of every ``...Error("...")``, raised or returned, {} for what is filled in.

    An argument that is a name stands for all that the module assigns to it.
    """
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                assigned.setdefault(name, []).append(value)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=function, args=[text, *_]) if makes_error(function):
                texts = assigned.get(text.id, []) if isinstance(text, ast.Name) else [text]
                for one in texts:
                    if (found := "".join(parts(one))) not in ("", "{}"):
                        yield found


def makes_error(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.endswith("Error")
        case ast.IfExp(body=body):
            return makes_error(body)
    return False


def parts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            for value in values:
                yield from parts(value)
        case ast.Call(func=ast.Attribute(value=template, attr="format")):
            yield from parts(template)
        case ast.BinOp(left=left, right=right):
            yield from parts(left)
            yield from parts(right)
        case _:
            yield "{}"


def test_they_have_one_style() -> None:
    found = [
        (file.relative_to(PROJECT).as_posix(), text)
        for folder in ("agent", "host", "mutators")
        for file in sorted((PROJECT / folder).rglob("*.py"))
        for text in sentences(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert len(found) > 200
    wrong = re.compile(r"(?!Include goes )[A-Z][a-z]+ |.*[.]$|.*[^.][.] [A-Z]", re.DOTALL)
    assert [one for one in found if wrong.match(one[1])] == []


def test_the_check_finds_each_kind() -> None:
    source = (
        'raise ValueError(f"{name} is wrong." + more)\nraise OSError("Wrong: {}".format(1))\n'
        'def why(): return errors.DeviceError("it is gone")\n'
        'text = "it is late"\nraise (LateError if late else OtherError)(text)'
    )
    assert sorted(sentences(ast.parse(source))) == [
        "Wrong: {}",
        "it is gone",
        "it is late",
        "{} is wrong.{}",
    ]
