"""The key figures of a campaign, as rows of a Markdown table."""

from edgeflare.analysis.formats.material import Material
from edgeflare.analysis.kinds import units_of
from edgeflare.analysis.replayed import ReplaySummary
from edgeflare.analysis.summary import Summary
from edgeflare.analysis.words import margin_text, number_text, percent_text, plain

_ENDS = {
    "seed-deviates": "seeds that deviate already",
    "unstable": "unstable (did not repeat)",
    "nonfinite": "NaN or infinity in an output",
    "exhausted": "nothing within the query budget",
    "timeout": "nothing within the time budget",
    "gave-up": "given up by the strategy",
    "failed": "failed: a model can't answer",
}


def key_figures(material: Material) -> list[list[str]]:
    """Return name and figure of what matters most; what is not known is left out."""
    summary = material.summary
    rows = [
        [f"{name} model", plain(model["name"])]
        for name, model in summary.models.items()
        if model.get("name")
    ]
    if summary.search.get("strategy"):
        rows.append(["strategy", plain(summary.search["strategy"])])
    rate = percent_text(summary.success_rate)
    rows.append(["success rate", f"{rate} ({summary.found:,} of {summary.searched:,} searched)"])
    rows += [
        [words, f"{summary.by_status[status]:,}"]
        for status, words in _ENDS.items()
        if summary.by_status.get(status)
    ]
    if summary.coverage.searches:
        rows.append(["covered without a trigger", plain(summary.coverage.words)])
    if summary.unfinished:
        rows.append(["not finished yet", f"{summary.unfinished:,}"])
    return rows + _costs(summary) + _distances(summary)


def replay_figures(replay: ReplaySummary) -> list[list[str]]:
    """Return what was replayed on what."""
    models = (
        ("original model", replay.original, replay.same_original),
        ("deployed model", replay.deployed, replay.same_deployed),
    )
    return [
        ["inputs of", plain(f"the {replay.source_kind} {replay.source}")],
        *(
            [which, plain(name) + (" (another file than then)" if same is False else "")]
            for which, name, same in models
            if name
        ),
    ]


def _costs(summary: Summary) -> list[list[str]]:
    rows = []
    queries, seconds = summary.queries_found, summary.seconds_found
    if queries:
        text = (
            f"median {number_text(queries.median, 0)}, mean {number_text(queries.mean, 1)}, "
            f"90 % {number_text(queries.p90, 0)}"
        )
        rows.append(["search queries to the first trigger", text])
    if seconds:
        rows.append(["seconds for a search that found one", f"median {seconds.median:.3f}"])
    rows.append(["device queries in all", f"{_device_queries(summary):,}"])
    return rows


def _device_queries(summary: Summary) -> int:
    return sum(
        summary.total_queries[name] for name in ("seed", "search", "confirmation", "measuring")
    )


def _distance_words(summary: Summary) -> str:
    """Return the median distances with their units; of images those of L2 go without saying."""
    units = units_of(summary.sample_rate)
    of = "" if summary.sample_rate is None else f" ({units.l2})"
    return f"L2 {number_text(summary.l2)}{of}, Linf {number_text(summary.linf, 0)} {units.levels}"


def _distances(summary: Summary) -> list[list[str]]:
    rows = []
    if summary.l2 is not None and summary.linf is not None:
        rows.append(["median distance to the seed", _distance_words(summary)])
    if summary.snr_db is not None:
        rows.append(["median signal-to-noise ratio", f"{summary.snr_db:.1f} dB"])
    if summary.original_margin is not None:
        deployed = summary.deployed_margin
        told = "none (labels only)" if deployed is None else margin_text(deployed)
        rows.append(
            ["median margin", f"original {margin_text(summary.original_margin)}, deployed {told}"]
        )
    if summary.labelled:
        text = (
            f"original {percent_text(summary.original_right / summary.labelled)}, "
            f"deployed {percent_text(summary.deployed_right / summary.labelled)}"
        )
        rows.append(["accuracy on the seeds with a label", text])
    return rows
