"""Count the fault suite's faults that have a witness, by kind and size.

    python tests/benchmarks/faults/witnesses.py --data FOLDER --original mnist --draws 1

needs the extra torch. Reserved draws are left out unless `--reserved` is given.
"""

import argparse
from pathlib import Path

import numpy as np

from edgeflare.bench.faults import (
    Inapplicable,
    draws,
    faulty_model,
    find_witness,
    is_reserved,
    open_original,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--original", required=True)
    parser.add_argument("--draws", type=int, default=3, help="of each kind and size")
    parser.add_argument("--reserved", action="store_true", help="the reserved draws instead")
    parser.add_argument("--no-gradients", action="store_true", help="natural and far inputs only")
    given = parser.parse_args()
    original = open_original(given.original, given.data)
    print("kind, size, draw: strength, total variation, found by")
    for draw in draws():
        if is_reserved(draw) != given.reserved or draw.index // 2 >= given.draws:
            continue
        words = "no witness"
        for one in draw.parameters:
            try:
                faulty = faulty_model(original, draw.kind, one)
            except Inapplicable as problem:
                words = f"not applicable: {problem}"
                break
            rng = np.random.default_rng(1)
            found = find_witness(original, faulty, rng, gradients=not given.no_gradients)
            if found is not None:
                words = f"{one.strength} {found.total_variation:.3f} {found.found_by}"
                break
        print(f"{draw.kind}, {draw.size}, {draw.index}: {words}", flush=True)


if __name__ == "__main__":
    main()
