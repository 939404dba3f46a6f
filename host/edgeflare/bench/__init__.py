"""Benchmarks: suites of model pairs and strategies, run as campaigns, and what their report says."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeflare.bench.cell_figures import CellFigures
    from edgeflare.bench.cells import Cell
    from edgeflare.bench.comparisons import Comparison, Correlation
    from edgeflare.bench.costs import Costs
    from edgeflare.bench.explanations import query_limits
    from edgeflare.bench.false_alarms import FalseAlarms
    from edgeflare.bench.fronts import FrontStep
    from edgeflare.bench.opening import Bench, open_bench
    from edgeflare.bench.perturb import perturb_weights
    from edgeflare.bench.report import BenchReport, bench_report
    from edgeflare.bench.rows import SearchRow
    from edgeflare.bench.run import BenchProgress, resume_bench, run_bench
    from edgeflare.bench.suite import Suite, SuiteAbout, load_suite, suite_about, suite_names
    from edgeflare.bench.words import margin_text, number_text, p_value_text, percent_text
    from edgeflare.bench.writing import write_report

_HOMES = {
    "cell_figures": ("CellFigures",),
    "cells": ("Cell",),
    "comparisons": ("Comparison", "Correlation"),
    "costs": ("Costs",),
    "explanations": ("query_limits",),
    "false_alarms": ("FalseAlarms",),
    "fronts": ("FrontStep",),
    "opening": ("Bench", "open_bench"),
    "perturb": ("perturb_weights",),
    "report": ("BenchReport", "bench_report"),
    "rows": ("SearchRow",),
    "run": ("BenchProgress", "resume_bench", "run_bench"),
    "suite": ("Suite", "SuiteAbout", "load_suite", "suite_about", "suite_names"),
    "words": ("margin_text", "number_text", "p_value_text", "percent_text"),
    "writing": ("write_report",),
}
_HOME_OF = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "Bench",
    "BenchProgress",
    "BenchReport",
    "Cell",
    "CellFigures",
    "Comparison",
    "Correlation",
    "Costs",
    "FalseAlarms",
    "FrontStep",
    "SearchRow",
    "Suite",
    "SuiteAbout",
    "bench_report",
    "load_suite",
    "margin_text",
    "number_text",
    "open_bench",
    "p_value_text",
    "percent_text",
    "perturb_weights",
    "query_limits",
    "resume_bench",
    "run_bench",
    "suite_about",
    "suite_names",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
