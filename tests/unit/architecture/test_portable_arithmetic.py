"""What decides a search uses no arithmetic whose last bits differ from one processor to the next."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
HOST = PROJECT / "host" / "edgeflare"

DECIDING = (
    "_internal/exact.py", "_internal/fourier.py", "answers", "metrics.py", "strategies", "survey",
)  # fmt: skip
"""Files and folders of the host whose results decide which inputs are asked about."""

ALLOWED = {
    "survey/audio_families.py": {
        "**": "decibels: audio's operators are documented as outside the promise",
        "math.log10": "decibels in words",
    },
    "survey/description.py": {
        "**": "powers of a Fraction, which are exact",
    },
    "answers/detections/formats/dense.py": {
        "math.pow": "a bound that is lower by a slack of many last bits",
        "math.log": "a bound that is lower by a slack of many last bits",
    },
    "answers/detections/formats/suppression.py": {
        "cv2": "NMSBoxes adds, multiplies and divides floats: each is one IEEE operation",
    },
    "answers/detections/pictures.py": {"cv2": "it draws"},
    "answers/values.py": {"cv2": "it draws"},
    "metrics.py": {
        "skimage": "SSIM: the bound min_ssim is documented as outside the promise",
    },
}
"""Why a name is used all the same."""

OF_NUMPY = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "power", "float_power"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arctan2"),
    *("arcsinh", "arccosh", "arctanh", "hypot", "cbrt", "sinc", "i0", "interp", "polyfit"),
    *("dot", "vdot", "inner", "matmul", "tensordot", "einsum", "kron", "cov", "corrcoef"),
    *("convolve", "correlate", "linalg", "fft"),
}
OF_MATH = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "hypot", "dist", "cbrt"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2", "asinh"),
    *("acosh", "atanh", "gamma", "lgamma", "erf", "erfc", "fma", "sumprod"),
}
OF_GENERATORS = {
    *("standard_normal", "normal", "uniform", "exponential", "standard_exponential", "gamma"),
    *("standard_gamma", "beta", "laplace", "lognormal", "poisson", "binomial", "triangular"),
}
LIBRARIES = {"cv2", "scipy", "skimage", "torch", "onnxruntime"}


def deciding_files() -> Iterator[Path]:
    for name in DECIDING:
        path = HOST / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def unportable(source: str) -> Iterator[tuple[int, str]]:
    """The lines and names of arithmetic that depends on the processor."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in OF_NUMPY:
                yield node.lineno, f"np.{name}"
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if name in OF_MATH:
                yield node.lineno, f"math.{name}"
            case ast.Attribute(value=ast.Name(id="exact")):
                continue
            case ast.Attribute(attr=name) if name in OF_GENERATORS:
                yield node.lineno, name
            case ast.ImportFrom(module="math", names=names):
                yield from ((node.lineno, f"math.{n.name}") for n in names if n.name in OF_MATH)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in LIBRARIES:
                yield node.lineno, module.split(".")[0]
            case ast.Import(names=names):
                found = {one.name.split(".")[0] for one in names} & LIBRARIES
                yield from ((node.lineno, name) for name in found)
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                yield node.lineno, "@"
            case ast.BinOp(op=ast.Pow(), left=left, right=right):
                if not all(isinstance(one, ast.Constant) for one in (left, right)):
                    yield node.lineno, "**"


@pytest.mark.parametrize(
    "path", list(deciding_files()), ids=lambda path: str(path.relative_to(HOST).as_posix())
)
def test_what_decides_a_search_is_the_same_on_every_processor(path: Path) -> None:
    allowed = ALLOWED.get(path.relative_to(HOST).as_posix(), {})
    found = [
        f"{path.relative_to(PROJECT)}:{line} uses {name}"
        for line, name in unportable(path.read_text(encoding="utf-8"))
        if name not in allowed
    ]
    assert not found, "use edgeflare._internal.exact instead"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("a = np.linalg.norm(b)", "np.linalg"), ("a = np.exp(b)", "np.exp"), ("a = b @ c", "@"),
        ("a = b ** 0.5", "**"), ("from math import tanh", "math.tanh"),
        ("a = self._rng.uniform(0, 1)", "uniform"), ("import cv2", "cv2"),
        ("from skimage import metrics", "skimage"),
    ],
)  # fmt: skip
def test_each_kind_is_seen(line: str, name: str) -> None:
    assert [found for _, found in unportable(line)] == [name]


@pytest.mark.parametrize("line", ["a = exact.normal(rng, 3)", "a = 2**53", "a = np.sqrt(b)"])
def test_what_is_portable_passes(line: str) -> None:
    assert not list(unportable(line))
