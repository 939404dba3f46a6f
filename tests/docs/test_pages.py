"""The documentation: every block runs, every link leads somewhere, every page is linked."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from filelock import FileLock

if sys.version_info < (3, 11):
    pytest.skip("the documentation needs Python 3.11 or newer", allow_module_level=True)

from command import ROOT
from documentation import (
    PAGES,
    USAGE_ERROR,
    anchors,
    blocks,
    check_block,
    check_command,
    commands,
    links,
    not_printed,
    own_commands,
    run_page,
    users_folder,
)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


LANGUAGES = (
    "shell", "python", "toml", "yaml", "json", "text", "{toctree}", "{eval-rst}", "{include}",
)  # fmt: skip
"""Of these shell and Python are run; others, such as sh or console, are mistakes."""
NIGHTLY = {"concepts", "extend", "research"}
"""Folders whose blocks run at night; those of the others tell users what to type."""
LONG = {
    f"docs/how-to/{page}.md"
    for page in (
        *("repair", "search-options", "explain", "inspect-units", "inspect"),
        *("compare", "pytest", "library", "broken-links", "fleets"),
        *("inspect-classes", "inputs", "nightly", "tasks"),
    )
}
"""Pages that take longest: tests in `e2e` do what their blocks do, so these run at night, too."""
WITH_BLOCKS = [
    pytest.param(
        page,
        id=name(page),
        marks=[pytest.mark.slow] * (page.parent.name in NIGHTLY or name(page) in LONG),
    )
    for page in PAGES
    if any(block.runs for block in blocks(page))
]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that each page's blocks run in, made once by the first of all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "users-folder"
    with FileLock(f"{folder}.lock"):
        finished = folder.with_suffix(".finished")
        if not finished.exists():
            shutil.rmtree(folder, ignore_errors=True)
            shared = os.environ.get("EDGEFLARE_SHARED_DATA", ROOT.parent / "shared" / "data")
            users_folder(folder, Path(shared))
            finished.touch()
    return folder


@pytest.mark.extended
@pytest.mark.parametrize("page", WITH_BLOCKS)
def test_every_block_runs(page: Path, template: Path, tmp_path: Path) -> None:
    if "recordings/" in page.read_text(encoding="utf-8") and not (template / "recordings").is_dir():
        pytest.skip("the shared models and data are absent")
    folder = tmp_path / "folder"
    shutil.copytree(template, folder)
    run_page(page, folder, processes=page.name == "README.md" or page.parent.name in NIGHTLY)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_valid(page: Path) -> None:
    for block in blocks(page):
        try:
            check_block(block, own_commands(page))
        except (AssertionError, USAGE_ERROR, SyntaxError, ValueError) as error:
            pytest.fail(f"{name(page)}:{block.line}: {error}\n{block.text}")
        assert block.language in LANGUAGES, f"{name(page)}:{block.line}: {block.language!r}"
        assert not block.mark.startswith("check only") or ": " in block.mark, (
            f"{name(page)}:{block.line}: say why it is not run"
        )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    wrong = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            wrong.append(target)
    assert wrong == []


def test_every_page_can_be_reached_from_the_readme_in_two_clicks() -> None:
    def pages_of(page: Path) -> set[Path]:
        files = {(page.parent / one.partition("#")[0]).resolve() for one in links(page)}
        return {file for file in files if file.suffix == ".md" and file in PAGES}

    first = pages_of(ROOT / "README.md")
    second = {one for page in first for one in pages_of(page)}
    assert sorted(map(name, set(PAGES) - first - second - {ROOT / "README.md"})) == []


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("edgeflare run a.toml --limit 4 | tee log", [["run", "a.toml", "--limit", "4"]]),
        ("cd x && HOME=y .venv/bin/edgeflare demo # edgeflare", [["demo"]]),
        ("edgeflare run \\\n  --limit 4\necho edgeflare; ls", [["run", "--limit", "4"]]),
        ("sudo install -o edgeflare x; $as nice -n 10 /x/edgeflare demo", [["demo"]]),
    ],
)
def test_commands_are_found_in_a_script(script: str, words: list[list[str]]) -> None:
    assert commands(script) == words


@pytest.mark.parametrize("words", [["rum"], ["run", "--limits", "4"], ["devices", "chek", "pi"]])
def test_a_command_or_flag_that_does_not_exist_is_seen(words: list[str]) -> None:
    with pytest.raises(USAGE_ERROR):
        check_command(words)


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("found 20 of 20\nwrote ... kB", None),
        ("found 3\nfound 4", "found 4"),
        ("wrote 1.5 MB", "wrote 1.5 MB"),
        ("found 19 of 20", "found 19 of 20"),
        ("wrote a: 9.5 kB\nfound", "found"),
    ],
)
def test_an_output_that_was_not_printed_is_seen(shown: str, missing: str | None) -> None:
    assert not_printed(shown, "found  20 of\n 20 in 5 s\nwrote a: 117.0 kB\n") == missing


def test_the_reference_pages_are_as_the_code_is() -> None:
    from generate_reference import main

    assert main(check=True) == 0, "run python docs/generate_reference.py"
