"""Operators from real distributions: a folder with metadata and a module, put on sys.path."""

import itertools
import os
import sys
from collections.abc import Callable
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path

import numpy as np
import pytest

from edgeflare_mutators import (
    Mutation,
    MutationError,
    MutatorLoadError,
    Operator,
    common_corruptions,
    default_pool,
    get,
    mutate,
    operators,
)

INVERT = """
import numpy as np
from edgeflare_mutators import Operator, Range

class Invert(Operator):
    name = {name!r}
    limits = (Range("from_level", 0, 255, "int"),)

    def _apply(self, sample, params):
        return np.where(sample >= params["from_level"], 255 - sample, sample)

class Other(Invert):
    name = "other"

class Video(Invert):
    kind = "video"

class Forgetful(Invert):
    def __init__(self):
        self.memory = None

def make():
    return Invert(from_level=(128, 255))

instance = Invert()
number = 7
"""

Install = Callable[..., str]

BUILT_IN = [
    *default_pool(),
    "salt-and-pepper",
    "gaussian-noise-wrapped",
    "multiplicative-noise-wrapped",
    *common_corruptions(),
]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution with one operator; returns the operator's name."""
    fresh = itertools.count()

    def _install(
        name: str, attribute: str, distribution: str = "my-mutators", source: str = INVERT
    ) -> str:
        site = tmp_path / str(next(fresh))
        module = f"{distribution}_{name}".replace("-", "_")
        info = site / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n"
        )
        (info / "entry_points.txt").write_text(
            f"[edgeflare.mutators]\n{name} = {module}:{attribute}\n"
        )
        (site / f"{module}.py").write_text(source.format(name=name))
        monkeypatch.syspath_prepend(site)
        return name

    return _install


@pytest.mark.parametrize("attribute", ["Invert", "instance", "make"])
def test_a_class_an_instance_or_a_function_gives_an_operator(install, attribute) -> None:
    name = install(f"invert-by-{attribute.lower()}", attribute)
    assert isinstance(get(name), Operator)
    assert list(operators()) == [*BUILT_IN, name]
    assert operators()[name] is get(name)
    image = np.array([0, 100, 200], np.uint8).reshape(1, 3, 1)
    mutated = mutate(image, Mutation(name, {"from_level": 128}))
    assert mutated.ravel().tolist() == [0, 100, 55]


def test_users_operators_come_after_the_built_in_ones_in_the_order_of_their_names(install) -> None:
    second, first = install("zz-last", "make", "one"), install("aa-first", "make", "two")
    assert list(operators()) == [*BUILT_IN, first, second]
    assert len(default_pool()) == 6


class CountingFinder(DistributionFinder):
    """Finds no distribution; counts how often distributions are looked for."""

    def __init__(self) -> None:
        self.scans = 0

    def find_spec(self, *_: object) -> None:
        return None

    def find_distributions(self, *_: object, **__: object) -> list[Distribution]:
        self.scans += 1
        return []


def test_distributions_are_read_once_for_all_names(install, monkeypatch) -> None:
    first, second = install("once-first", "make", "one"), install("once-second", "make", "two")
    assert get(first) is not get(second)  # their first import may add __pycache__ to the folders
    finder = CountingFinder()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    for _ in range(3):
        assert list(operators()) == [*BUILT_IN, first, second]
    assert finder.scans <= 1


def test_what_is_installed_or_removed_while_the_program_runs_is_seen(install, tmp_path) -> None:
    first, second = install("seen-first", "make", "one"), install("seen-second", "make", "two")
    assert list(operators()) == [*BUILT_IN, first, second]
    site = tmp_path / "1"
    info = next(site.glob("*.dist-info"))
    os.utime(site, (1, 1))  # so that each change shows, however coarse the clock of the disk is
    assert list(operators()) == [*BUILT_IN, first, second]
    info.rename(tmp_path / info.name)
    assert list(operators()) == [*BUILT_IN, first]
    os.utime(site, (2, 2))
    assert list(operators()) == [*BUILT_IN, first]
    (tmp_path / info.name).rename(info)
    assert list(operators()) == [*BUILT_IN, first, second]


@pytest.mark.parametrize(
    ("attribute", "source", "words"),
    [
        ("Invert", "import no_such_library", "ModuleNotFoundError: No module named"),
        ("Invert", "1 / 0", "ZeroDivisionError: division by zero"),
        ("Invert", "class", "SyntaxError"),
        ("Missing", INVERT, "AttributeError"),
        ("number", INVERT, "TypeError: 'int' object is not callable"),
        ("dict", "", "is a dict; .* must be an edgeflare_mutators.Operator"),
        ("Other", INVERT, "calls itself 'other'; give both the same name"),
        ("Video", INVERT, "is of kind 'video'; the kinds are image, audio"),
        ("Forgetful", INVERT, r"has no ranges; call super\(\).__init__\(\)"),
    ],
    ids=["import", "raises", "syntax", "missing", "number", "dict", "name", "kind", "init"],
)
def test_an_operator_that_fails_is_named_with_its_distribution(
    install: Install, request: pytest.FixtureRequest, attribute: str, source: str, words: str
) -> None:
    if attribute == "dict":
        source = "dict = dict\n"
    name = install(f"broken-{request.node.callspec.id}", attribute, source=source)
    for ask in (operators, lambda: get(name)):
        with pytest.raises(MutatorLoadError, match=f"1.2 .*{words}"):
            ask()


def test_a_broken_operator_is_no_hindrance_to_the_others(install: Install) -> None:
    good = install("still-good", "Invert", "good")
    install("still-broken", "Invert", "bad", source="1 / 0")
    assert get("gaussian-noise").name == "gaussian-noise"
    assert get(good).name == good
    assert len(default_pool()) == 6
    with pytest.raises(MutationError, match=r"bad 1\.2"):
        operators()


def test_the_name_of_a_built_in_operator_is_taken(install: Install) -> None:
    name = install("median-blur", "Invert", "impostor")
    with pytest.raises(MutatorLoadError, match=r"impostor 1\.2"):
        operators()
    assert get(name) is default_pool()["median-blur"]


def test_two_distributions_with_one_name_are_both_named(install: Install) -> None:
    install("twice", "Invert", "first-of-two")
    name = install("twice", "Invert", "second-of-two")
    for ask in (operators, lambda: get(name)):
        with pytest.raises(MutatorLoadError, match=r"first-of-two 1\.2"):
            ask()
