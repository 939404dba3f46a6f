"""What is kept of a report in `tests/golden`: what does not depend on the machine, its clock and its versions."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MASK = "..."
_MACHINE = {"board", "soc", "cpu", "kernel", "os", "platform"}
"""Keys of JSON whose values are found in texts, too."""
_MASKED = {
    *_MACHINE,
    *("arch", "bytes", "cpu_flags", "edgeflare", "host", "numpy", "python", "version"),
    *("seconds", "device_seconds", "seconds_found", "seconds_searched"),
}
_PACKAGES = "onnx|onnxruntime|ai-edge-litert|opencv-python-headless"
_PATTERNS: tuple[tuple[str, Any], ...] = (
    (r"\d{8}T\d{6}Z(?:-\d+)?", "STAMP"),
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.]\d+)?)?)?(?: UTC|[+]00:00|Z)?", "DATE"),
    (r"sha256-[\w+/]+=*", "sha256-DIGEST"),
    (r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}\b", "DIGEST"),
    (rf"\b({_PACKAGES}) \d+(?:[.]\d+)+", r"\1 VERSION"),
    (r"\b(timestamp|time)=\"[^\"]*\"", r'\1="..."'),
    (r"(?m)^(?:\| | )seconds [^\n]*$", lambda match: _without_numbers(match[0])),
)
_FACTS = (
    "board|soc|cpu|arch|os|kernel|python|numpy|edgeflare|platform|machine|onnxruntime|ai-edge-litert"
    "|opencv-python-headless"
)
_TERMINAL: tuple[tuple[str, Any], ...] = (
    (r"(?ms)^(Telemetry\n).*?(?=^\S|\Z)", rf"\1 {MASK}\n"),
    (r"(?<=\S)   +", "  "),
    (r"─+", "──"),
    (r"(?m) +$", ""),
)
_PATTERNS_OF: dict[str, tuple[tuple[str, Any], ...]] = {
    ".txt": _TERMINAL,
    ".xml": (
        *_TERMINAL,
        (r"<property name=\"seconds[^>]*>", lambda match: _without_numbers(match[0])),
    ),
    ".md": ((r"(?ms)^(### Telemetry\n).*?(?=^#|\Z)", rf"\1\n{MASK}\n\n"),),
    ".html": (
        (r"(?s)<(style|script)>.*?</\1>", r"<\1></\1>"),
        (r"data:([\w/+.-]+);base64,[A-Za-z0-9+/=]+", r"data:\1"),
        (r"(?s)(<svg[^>]* aria-label=\"(?:Time of a search|Latency)).*?</svg>", rf"\1{MASK}</svg>"),
        (r"(?s)(<table id=\"telemetry\">).*?</table>", rf"\1{MASK}</table>"),
        # Drawn of a run that was going on when a minute of the clock ended.
        (
            (
                r"(?s)(<section[^>]* id=\"telemetry\"(?:(?!</section>).)*?</table></div>)"
                r"\s*<div class=\"grid\">.*?</figure>\s*</div>"
            ),
            r"\1",
        ),
        (
            r"<dt>seconds .*?</dd>|<th scope=\"row\">seconds.*?</tr>",
            lambda match: _without_numbers(match[0]),
        ),
        (rf"<dt>({_FACTS})</dt><dd>.*?</dd>", rf"<dt>\1</dt><dd>{MASK}</dd>"),
        (r"<td class=\"number\">[\d,]+</td>(?=<td>DIGEST)", f'<td class="number">{MASK}</td>'),
        (
            r"(?<=>)(?=<(?:tr|td|div|dt|p|svg|text|title|path|rect|figure|li|option)\b)",
            "\n",
        ),
        (r"\n(?:[ \t]*\n)+", "\n"),
    ),
}


def kept(texts: dict[str, str], home: Path) -> dict[str, str]:
    """Return these renderings, by file name, as they are on every machine.

    Digests, dates, durations, versions, telemetry and what the machine is are masked, numbers are
    rounded to three digits, pictures are left out. `show.json` tells what the machine is.
    """
    names = set(_machine(json.loads(texts["show.json"])))
    places = {str(home): "HOME", str(home).replace("_", r"\_"): "HOME"}
    places |= dict.fromkeys(sorted(names, key=len, reverse=True), "MACHINE")
    return {name: _kept(text, Path(name).suffix, places) for name, text in texts.items()}


def _kept(text: str, format_: str, places: dict[str, str]) -> str:
    for value, word in places.items():
        text = text.replace(value, word)
    if format_ == ".json":
        text = json.dumps(_masked(json.loads(text)), indent=1, ensure_ascii=False) + "\n"
    elif format_ == ".csv":
        text = _rows(text)
    patterns = [*_PATTERNS, *_PATTERNS_OF.get(format_, ())]
    for pattern, by in patterns:
        text = re.sub(pattern, by, text)
    data = r'(?s)(<script type="application/json"[^>]*>)(.*?)(?=</script>)'
    return re.sub(data, _data, text) if format_ == ".html" else text


def _machine(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in _MACHINE and isinstance(inner, str) and len(inner) > 3:
                yield inner
            yield from _machine(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _machine(inner)


def _masked(value: Any, key: str = "") -> Any:
    if key in _MASKED or (key.endswith("_s") and value is not None):
        return MASK
    if key == "telemetry":
        return [{name: each[name] for name in ("device", "queries")} for each in value]
    if isinstance(value, dict):
        return {name: _masked(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner) for inner in value]
    return _rounded(value)


def _rounded(value: Any) -> Any:
    return float(f"{value:.3g}") if isinstance(value, float) else value


def _rows(text: str) -> str:
    """Return a CSV whose numbers are rounded and whose durations are masked."""
    written = io.StringIO()
    rows = list(csv.DictReader(io.StringIO(text)))
    table = csv.DictWriter(written, text.splitlines()[0].split(","), lineterminator="\n")
    table.writeheader()
    for row in rows:
        for name, value in row.items():
            if name in _MASKED and value:
                row[name] = MASK
            elif re.fullmatch(r"-?\d+[.]\d+(e-?\d+)?", value):
                row[name] = str(_rounded(float(value)))
        table.writerow(row)
    return written.getvalue()


def _without_numbers(text: str) -> str:
    return re.sub(r"\d[\d.,]*", "N", text)


def _data(match: re.Match[str]) -> str:
    data = json.loads(match[2])
    lines = [match[1]]
    for name, value in data.items():
        if name == "findings":
            for row in zip(*value.values(), strict=True):
                finding = dict(zip(value, row, strict=True))
                lines.append(json.dumps(_masked(finding), ensure_ascii=False))
        else:
            lines.append(json.dumps({name: _masked(value)}, ensure_ascii=False))
    return "\n".join(lines)
