"""The pages of the documentation, and their blocks as a user would run them."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import tomllib
import typer
from command import DEMO, ROOT, edgeflare, environment

from edgeflare.cli import app

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The base of errors in a command line; typer may have a click of its own."""

PAGES = sorted(
    page for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if page.name != "CHANGELOG.md"
)
_FENCE = re.compile(
    r"^(?:[ ]*<!-- test: (?P<mark>.*?) -->\n)?(?P<indent>[ ]*)```(?P<language>[\w{}-]*)\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_BEFORE_A_COMMAND = re.compile(
    r"sudo|env|exec|nice|time|timeout|if|while|until|then|do|else|!|-\S*|[\d.]+s?|\$\w+|\w+=.*"
)
_NUMBER = re.compile(r"(?P<number>\d+(?:[.,]\d+)*)|[^\d]+")
_MNIST = ROOT / "host" / "edgeflare_bench" / "assets" / "mnist"
_TERMINAL = {"COLUMNS": "120", "NO_COLOR": "1"}
_DEVICES = ("pi4", "pi5", "jetson", "phone")


@dataclass(frozen=True)
class Block:
    """A fenced block, its language, what the comment before it states, and its line."""

    language: str
    text: str
    mark: str
    line: int

    @property
    def runs(self) -> bool:
        """Whether it is run, rather than checked or written to a file."""
        stated = self.mark.startswith(("check only", "file "))
        return self.language in ("shell", "python") and not stated


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        indent = found["indent"]
        lines = [line.removeprefix(indent) for line in found["text"].splitlines()]
        line = text.count("\n", 0, found.start("language")) + 1
        yield Block(found["language"], "\n".join(lines) + "\n", found["mark"] or "", line)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code-hosting sites make them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def links(page: Path) -> list[str]:
    """Return the targets of a page's links and pictures."""
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text(encoding="utf-8")))
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(
        r"<(?:img|source)[^>]* src(?:set)?=\"([^\"]+)\"", text
    )


def _words(script: str) -> list[list[str]]:
    """Return the words of each line of a shell script, operators among them."""
    lines = []
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lines.append(list(lexer))
    return lines


def only_commands(script: str) -> list[list[str]]:
    """Return the words of the ``edgeflare`` commands of a script that has nothing else, else nothing."""
    lines = list(filter(None, _words(script)))
    plain = all(
        line[0] == "edgeflare" and not any(set(word) & set("();<>|&$*~") for word in line)
        for line in lines
    )
    return [line[1:] for line in lines] if plain else []


def commands(script: str) -> list[list[str]]:
    """Return the words of each ``edgeflare`` command of a shell script."""
    found: list[list[str]] = []
    for line in _words(script):
        words: list[str] | None = None
        may_begin = True
        for word in line:
            if set(word) <= set("();<>|&"):
                words, may_begin = None, True
            elif words is not None:
                words.append(word)
            elif may_begin and word.rpartition("/")[2] == "edgeflare":
                words = []
                found.append(words)
            else:  # the argument of another program may be called edgeflare, too
                may_begin = may_begin and _BEFORE_A_COMMAND.fullmatch(word) is not None
    return found


def check_command(words: Sequence[str]) -> None:
    """Raise a USAGE_ERROR where a command or a flag of it doesn't exist."""
    command: Any = typer.main.get_command(app)
    context = command.context_class(command, info_name="edgeflare")
    words = list(words)
    while hasattr(command, "commands"):
        while words and words[0].startswith("-"):
            command.make_parser(context).parse_args([words.pop(0)])
        if not words:
            return
        name, *words = words
        inner = command.get_command(context, name)
        if inner is None:
            raise USAGE_ERROR(f"no such command: {name}")
        command, context = inner, inner.context_class(inner, info_name=name, parent=context)
    command.make_parser(context).parse_args(words)


def own_commands(page: Path) -> set[str]:
    """Return the names of the commands that packages on a page declare."""
    tables = [tomllib.loads(one.text) for one in blocks(page) if one.language == "toml"]
    entries = [one.get("project", {}).get("entry-points", {}) for one in tables]
    groups = ("edgeflare.commands", "edgeflare.analyses")
    return {name for one in entries for group in groups for name in one.get(group, ())}


def check_block(block: Block, own: Collection[str] = ()) -> None:
    """Check what can be known without running it: syntax, commands and their flags.

    Commands in `own` exist only when the page's blocks are run.
    """
    if block.language == "shell":
        done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        for words in commands(block.text):
            if set(own).isdisjoint(words):
                check_command(words)
    elif block.language == "python":
        compile(block.text, "block", "exec")
    elif block.language == "toml":
        tomllib.loads(block.text)


def users_folder(folder: Path, shared: Path) -> None:
    """Make what every page's blocks find in their folder: models, seeds, devices, campaigns."""
    folder.mkdir()
    for name in ("original.onnx", "deployed.tflite", "original.tflite"):
        shutil.copy(DEMO / name, folder)
    shutil.copy(_MNIST / "lenet5.onnx", folder / "lenet5.onnx")
    for name, kind in (("int8", "quantized"), ("pruned", "pruned"), ("distilled", "distilled")):
        shutil.copy(_MNIST / f"lenet5_{kind}.onnx", folder / f"{name}.onnx")
    for name, file in (("detector", "original"), ("detector_int8", "deployed")):
        shutil.copy(DEMO.with_name("demo_detection") / f"{file}.onnx", folder / f"{name}.onnx")
    shutil.copy(DEMO.with_name("demo_detection") / "seeds.npz", folder / "scenes.npz")
    with np.load(DEMO / "seeds.npz") as seeds:
        pixels, labels = seeds["images"], seeds["labels"]
    for number in range(6):
        _save(folder / "photos" / f"digit_{number}.png", pixels[number])
    for number in range(20):
        _save(folder / "labelled" / str(labels[number]) / f"{number}.png", pixels[number])
    names = ", ".join(f'"{label}": {label}' for label in range(10))
    (folder / "labels.json").write_text(f"{{{names}}}\n")
    (folder / "campaign.toml").write_text(
        '[original]\npath = "original.onnx"\ninput = { scale = "1/255" }\n\n'
        '[deployed]\npath = "deployed.tflite"\n\n[seeds]\npath = "photos"\n'
    )
    (folder / "devices.toml").write_text(
        "".join(f'[devices.{name}]\ntransport = "local"\n\n' for name in _DEVICES)
    )
    if (models := shared / "models" / "mlperf-tiny").is_dir():
        for kind in ("float", "int8"):
            shutil.copy(models / f"kws_dscnn_{kind}.tflite", folder / f"kws_{kind}.tflite")
        (folder / "recordings").mkdir()
        for sound in sorted((shared / "audio" / "speech").glob("tflm_*.wav")):
            shutil.copy(sound, folder / "recordings")
    for name, more in (("first", ()), ("second", ("--strategy", "dflare"))):
        ran = edgeflare("run", "campaign.toml", "--out", f"campaigns/{name}", *more, home=folder)
        assert ran.code == 0, ran.err
    shutil.copytree(folder / "campaigns" / "first", folder / "campaigns" / "release-3")


def run_page(page: Path, folder: Path, *, processes: bool) -> None:
    """Run the blocks of a page in a folder as `users_folder` makes it; AssertionError: which failed.

    Blocks of nothing but ``edgeflare`` commands run in this process, which saves a second or two for
    each, unless `processes` is True or packages were installed for the page.
    """
    variables = _programs(folder)
    installed = folder / ".site"
    own = own_commands(page)
    printed = ""
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        try:
            check_block(block, own)
        except (AssertionError, USAGE_ERROR, SyntaxError, ValueError) as error:
            raise AssertionError(f"{where}: {error}\n{block.text}") from error
        if block.mark.startswith("file "):
            file = folder / block.mark.removeprefix("file ").strip()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.mark == "output":
            missing = not_printed(block.text, printed)
            assert missing is None, f"{where}: not printed: {missing}\n{printed}"
        elif block.runs:
            here = [] if processes or any(installed.iterdir()) else only_commands(block.text)
            if block.language == "shell" and here:
                code, printed = _run_here(here, folder)
            else:
                code, printed = _run_program(block, folder, variables)
            expected = int(block.mark.removeprefix("exit ")) if block.mark else 0
            assert code == expected, f"{where}: exit code {code}\n{block.text}\n{printed}"


def _run_here(asked: list[list[str]], folder: Path) -> tuple[int, str]:
    """Run commands up to the first that fails; return its exit code and what all of them printed."""
    printed = ""
    for words in asked:
        ran = edgeflare(*words, home=folder, extra=_TERMINAL)
        printed += ran.both
        if ran.code:
            return ran.code, printed
    return 0, printed


def _run_program(block: Block, folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    """Run a block as a program of its own; return its exit code and what it printed."""
    program = ["bash", "-euo", "pipefail", "-c"]
    if block.language == "python":
        program = [sys.executable, "-c"]
    done = subprocess.run(
        [*program, block.text], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout


def not_printed(shown: str, printed: str) -> str | None:
    """Return the first line of a block that was not printed after those before it, else None.

    Lines may be left out; ``...`` stands for anything. A number stands for any number, since times,
    sizes and versions differ, but counts ("19 of 20") and shares ("95 %") are what they are.
    """
    place = 0
    for line in filter(None, map(str.strip, shown.splitlines())):
        pattern = ""
        for part in _NUMBER.finditer(line):
            before, after = line[: part.start()], line[part.end() :]
            if part["number"] is None:
                text = re.sub(r"(\\ )+", r"\\s+", re.escape(part[0]))
                pattern += text.replace(r"\.\.\.", ".*")
            elif before.endswith(" of ") or after.startswith((" of ", " %")):
                pattern += rf"\b{re.escape(part[0])}"
            else:
                pattern += r"\d[\d.,]*"
        found = re.compile(pattern).search(printed, place)
        if found is None:
            return line
        place = found.end()
    return None


def _save(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), pixels)


_PIP = """\
import configparser, pathlib, re, shutil, sys
import tomllib
site, project = map(pathlib.Path, sys.argv[1:3])
arguments = [one for one in sys.argv[3:] if not one.startswith("-")]
assert arguments.pop(0) == "install", sys.argv
for wanted in arguments:
    wanted, _, extras = wanted.rstrip("]").partition("[")
    table = tomllib.loads((pathlib.Path("." if wanted == "edgeflare" else wanted) / "pyproject.toml").read_text()
        if wanted not in ("edgeflare", ".") else (project / "pyproject.toml").read_text())["project"]
    missing = set(filter(None, extras.split(","))) - set(table.get("optional-dependencies", {}))
    assert not missing, f"no such extra: {missing}"
    if wanted in ("edgeflare", "."):
        continue
    for file in (pathlib.Path(wanted)).rglob("*.py"):
        if "tests" not in file.parts:
            shutil.copy(file, site)
    info = site / (re.sub(r"[-.]+", "_", table["name"]) + "-1.0.dist-info")
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {table['name']}\\nVersion: 1.0\\n")
    entries = configparser.ConfigParser(delimiters="=", interpolation=None)
    entries.optionxform = str
    entries.read_dict(table.get("entry-points", {}))
    with open(info / "entry_points.txt", "w") as out:
        entries.write(out)
"""
"""Stands for pip: packages of a page's own are brought into its folder, without a network."""


def _programs(folder: Path) -> dict[str, str]:
    """Return an environment in which ``edgeflare``, ``python`` and ``pip`` are those of the test."""
    programs, site = folder / ".programs", folder / ".site"
    programs.mkdir()
    site.mkdir()
    (programs / "pip.py").write_text(_PIP)
    this = shlex.quote(sys.executable)
    for name, what in (
        ("edgeflare", f"{this} -m edgeflare.cli"),
        ("python", this),
        ("python3", this),
        ("pytest", f"{this} -m pytest"),
        ("pip", f"{this} {programs}/pip.py {site} {ROOT}"),
    ):
        (programs / name).write_text(f'#!/bin/sh\nexec {what} "$@"\n')
        (programs / name).chmod(0o755)
    variables = environment(folder)
    variables["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    variables["PYTHONPATH"] += f"{os.pathsep}{site}"
    return {**variables, **_TERMINAL}
