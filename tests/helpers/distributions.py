"""Distributions with entry points, as pip would install them: a folder with metadata and a module."""

from collections.abc import Mapping
from pathlib import Path


def write_distribution(
    site: Path, module: str, source: str, entries: Mapping[str, str], name: str = "my-plugins"
) -> None:
    """Put one into a folder that is, or will be, on ``sys.path``.

    `entries` has an object of the module for each ``group/name``.
    """
    info = site / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = []
    for entry, attribute in entries.items():
        group, _, one = entry.partition("/")
        lines.append(f"[{group}]\n{one} = {module}:{attribute}\n")
    (info / "entry_points.txt").write_text("".join(lines))
    (site / f"{module}.py").write_text(source)
