"""One finding as a JSON object, as the reports have it."""

from typing import Any

from edgeflare.analysis.findings import Finding
from edgeflare.analysis.formats.material import Material
from edgeflare.analysis.rows import jsonable, outcome_part


def finding_row(material: Material, finding: Finding) -> dict[str, Any]:
    """Return what an outcome says of a finding, its seed, its cause, and the line that sends it again.

    `original_class` and `deployed_class` are the labels' names, None where they have none;
    `disagreement` is how far both answers are apart, from 0 to 1.
    """
    row = outcome_part(material.store.models, finding.outcome)
    labels = {name: row[f"{name}_label"] for name in ("original", "deployed")}
    known = material.names is not None
    return {
        **row,
        "disagreement": jsonable(finding.outcome.disagreement),
        "label": finding.seed.label,
        "seed_sample": finding.seed.sample,
        "trigger_sample": row["trigger_sample"] or finding.seed.sample,
        **{
            f"{name}_class": material.name(label) if known and label is not None else None
            for name, label in labels.items()
        },
        "cause": finding.cause,
        "command": finding.command,
    }
