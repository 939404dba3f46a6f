"""Ask a survey about faulty and healthy models; print deviations and the area under the curve.

    python tests/benchmarks/faults/responses.py --data FOLDER --original mnist --draws 1

Reserved draws are left out unless `--reserved` is given. Of the mildest faults the strongest is
asked about, with or without a witness.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from edgeflare.bench.faults import (
    Inapplicable,
    area_under_curve,
    draws,
    faulty_model,
    healthy_models,
    is_reserved,
    open_original,
    respond,
    survey_inputs,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--original", required=True)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--queries", type=int, default=6, help="of each seed")
    parser.add_argument("--draws", type=int, default=3, help="of each kind and size")
    parser.add_argument("--reserved", action="store_true", help="the reserved draws instead")
    given = parser.parse_args()
    original = open_original(given.original, given.data)
    surveyed = survey_inputs(original, seeds=given.seeds, queries=given.queries)
    print("model: deviations of queries, first deviation at, mean total variation")
    healthy = []
    for one in healthy_models(original):
        answer = respond(original, one.model, surveyed)
        healthy.append(answer.total_variation)
        print(f"{one.name}: {_words(answer)}", flush=True)
    faulty, found = defaultdict(list), defaultdict(int)
    for draw in draws():
        if is_reserved(draw) != given.reserved or draw.index // 2 >= given.draws:
            continue
        try:
            model = faulty_model(original, draw.kind, draw.parameters[-1])
        except Inapplicable:
            continue
        answer = respond(original, model, surveyed)
        faulty[draw.size].append(answer.total_variation)
        found[draw.size] += answer.deviations > 0
        print(f"{draw.kind}, {draw.size}, {draw.index}: {_words(answer)}", flush=True)
    for size, values in faulty.items():
        area = area_under_curve(healthy, values)
        print(f"{size}: {found[size]} of {len(values)} deviate, area under the curve {area:.3f}")


def _words(answer) -> str:
    first = "never" if answer.first is None else answer.first
    return f"{answer.deviations} of {answer.queries}, {first}, {answer.total_variation:.4f}"


if __name__ == "__main__":
    main()
