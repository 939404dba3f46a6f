"""Everything a campaign came to as one JSON object."""

import io
import json
from typing import Any

from edgeflare.analysis.findings import findings, jsonable
from edgeflare.reports.text_reports import ReportData, finding_row


def text(material: ReportData) -> str:
    """Return the object, each finding on a line of its own; NaN and infinity are texts."""
    replay = material.replay
    known: dict[str, Any] = {
        **material.summary.to_json(),
        "verdict": material.verdict,
        "limits": [one.to_json() for one in material.limits],
        "replay": None if replay is None else replay.to_json(),
        "class_names": material.names,
    }
    file = io.StringIO()
    file.write("{\n")
    for name, value in known.items():
        file.write(f"{json.dumps(name)}: {_dumped(value)},\n")
    file.write('"findings": [')
    for number, finding in enumerate(findings(material.store)):
        file.write(",\n" if number else "\n")
        file.write(_dumped(finding_row(material, finding)))
    file.write("\n]\n}\n")
    return file.getvalue()


def _dumped(value: Any) -> str:
    return json.dumps(jsonable(value), allow_nan=False)
