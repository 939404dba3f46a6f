"""A campaign with a seed and a device in it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgeflare.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An open campaign with the seed "a" and the device of fingerprint {"board": "pi"}."""
    with Store.create(tmp_path / "campaign", {"seed": 1}, environment={"numpy": "2.0"}) as created:
        created.add_seed("a", np.zeros((2, 2, 1), np.uint8), label=3)
        created.add_device({"board": "pi"}, "bench pi")
        yield created
