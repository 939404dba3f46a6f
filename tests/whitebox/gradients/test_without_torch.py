"""Without torch one sentence says how to install it."""

import sys

import pytest

from edgeflare.errors import UsageError
from edgeflare_whitebox.gradients import DifferentiableModel


def test_a_missing_torch_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(UsageError, match=r"install 'edgeflare\[torch\]'"):
        DifferentiableModel("original.onnx")
