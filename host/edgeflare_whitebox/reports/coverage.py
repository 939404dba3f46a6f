"""What a campaign's inputs cover of the original, as a table."""

from collections.abc import Sequence

from edgeflare._internal.text import counted, names_text, percent_text
from edgeflare.document import Block, Column, Item, Listing, Table, Text
from edgeflare_whitebox import CRITERIA, CoverageFound, CriterionCoverage
from edgeflare_whitebox.coverage_campaign import CoverageSettings, measure_coverage
from edgeflare_whitebox.stored import Inspection

SET_NAMES = {
    "seeds": "seeds",
    "triggers": "triggering inputs",
    "survey": "survey findings",
    "union": "union",
}
_NAMED = 6
"""Layers that are named at most."""
NO_MEASURE = (
    "These shares say what the inputs exercise, and are no measure of quality: neither is a model better "
    "nor a campaign more thorough because they are high"
)


def coverage_document(found: CoverageFound) -> list[Block]:
    """Return what each set of inputs covers by each criterion, and how it was measured."""
    layers = dict.fromkeys(name for one in found.criteria for name in one.layers)
    columns = (
        Column("criterion", 0, lambda one: one.name, text=True),
        *(_column(found, which) for which in SET_NAMES),
        Column("counts", 1, lambda one: one.counts, text=True),
    )
    named = names_text(layers, _NAMED)
    title = f"{found.model}, {counted(len(layers), 'layer')} ({named}), each input counted once"
    if not found.finished:
        title += "; the campaign wasn't finished then: those that it had"
    return [
        Table(columns, found.criteria, title, "coverage-table"),
        Text(NO_MEASURE, "strong"),
        Listing(tuple(Item(one) for one in (*_profile(found), *found.notices))),
    ]


def _column(found: CoverageFound, which: str) -> Column:
    def figure(one: CriterionCoverage) -> str:
        return percent_text(getattr(one.scores, which))

    return Column(f"{SET_NAMES[which]} ({getattr(found.inputs, which):,})", 0, figure)


def _profile(found: CoverageFound) -> list[str]:
    """Return what the inputs were compared with, and what follows of it."""
    own = found.profile is None
    source = "the seeds themselves" if own else found.profile
    lines = [f"Compared with {counted(found.profiled, 'profiling input')}: {source}"]
    subsampled = found.traces is not None and found.traces < found.profiled
    known = {one.name: one for one in found.criteria}
    if own:
        comparing = ("NBC", "SNAC") if subsampled else ("NBC", "SNAC", "DSC")
        zero = [name for name in comparing if name in known]
        if zero:
            lines[0] += (
                f", so that {_listed(zero)} of the seeds "
                f"{'is' if len(zero) == 1 else 'are'} 0; --profile takes other inputs, such as training inputs"
            )
    if subsampled:
        traced = [name for name, one in CRITERIA.items() if one.keeps_traces and name in known]
        lines.append(
            f"{_listed(traced)}: compared with {found.traces:,} of them, drawn at random (seed "
            f"{found.random_seed})"
        )
    if found.units is not None and found.dead_units is not None:
        lines.append(
            f"{found.dead_units:,} of {counted(found.units, 'unit')} are constant over these inputs (dead "
            "units) and left out"
        )
    if "LSC" in known and known["LSC"].scores.union == 0:
        upper = f"{known['LSC'].settings['upper']:,g}"
        lines.append(
            f"LSC is 0: each input's surprise is 0 or less, or above {upper}. It is 0 or less where "
            "profiling inputs lie so close together that their density is above 1, which more of them "
            f"need not change. It is above {upper} for others where a class has fewer profiling inputs "
            "than the layer has units: there --profile with more of them helps"
        )
    return lines


def _listed(names: Sequence[str]) -> str:
    """Return names with commas and "and" between them."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


class Coverage(Inspection[CoverageSettings, CoverageFound]):
    """``inspect coverage``."""

    name = "coverage"
    about = "Measure which share of the original's units the seeds, triggers and survey findings exercise."
    settings, result = CoverageSettings, CoverageFound
    title, order = "Coverage of the original", 100
    compute = staticmethod(measure_coverage)
    blocks = staticmethod(lambda result, *_: coverage_document(result))


COVERAGE = Coverage()
