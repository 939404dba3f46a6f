"""The API reference has every public name."""

import importlib
import re
from pathlib import Path

import pytest

API = Path(__file__).resolve().parents[3] / "docs" / "reference" / "api"
PACKAGES = (
    "edgeflare", "edgeflare.analysis", "edgeflare.assertions", "edgeflare_bench",
    "edgeflare.campaign", "edgeflare.devices", "edgeflare_lab.distributed", "edgeflare.explanation",
    "edgeflare_whitebox", "edgeflare.nightly", "edgeflare.repair", "edgeflare.reports",
    "edgeflare.strategies", "edgeflare_lab.testing", "edgeflare_lab.virtual",
    "edgeflare_agent.runtimes", "edgeflare_mutators",
)  # fmt: skip
_ELSEWHERE = {"__version__", "ADDED", "RUNTIMES", "Array", "THREADS"}
"""Names of no use to others, and two that the page of runtimes has in its text."""
_DIRECTIVE = re.compile(r"^\.\. auto\w+:: ([\w.]+)", re.MULTILINE)


def documented() -> list[str]:
    """Return the dotted names of the directives of all pages."""
    pages = sorted(API.glob("*.md"))
    return [name for page in pages for name in _DIRECTIVE.findall(page.read_text("utf-8"))]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_on_a_page(package: str) -> None:
    names = {name.rpartition(".")[2] for name in documented()}
    public = importlib.import_module(package).__all__
    assert sorted(set(public) - names - _ELSEWHERE) == []


def test_every_name_on_a_page_exists_and_stands_there_once() -> None:
    names = documented()
    assert sorted({name for name in names if names.count(name) > 1}) == []
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name
