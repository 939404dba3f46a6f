"""Makes the pictures of the documentation from a real campaign, that of the demo.

    python docs/pictures.py     # writes docs/pictures/; needs Chromium

The demo's seeds are MNIST digits; host/edgeflare/assets/demo/NOTICE.txt has their licence.
"""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

FOLDER = Path(__file__).resolve().parent / "pictures"
WIDTH = 1100
"""Of the report's window, in CSS pixels."""
VERDICT, CARDS = (0, 410), (1628, 2290)
"""From where to where the picture shows the page, in CSS pixels; it is as high as both."""

SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>.{unique_id}-matrix {{ font: {char_height}px/{line_height}px Menlo, Consolas, monospace }}
{styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""
"""rich's own form of a terminal, without fonts from the network."""


def edgeflare(*arguments: str, folder: Path) -> str:
    """Run a command as in a terminal with colours; return what it prints on stdout."""
    variables = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": "100", "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "edgeflare.cli", *arguments],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def draw_terminal(command: str, printed: str, file: Path) -> None:
    """Write an SVG of a terminal in which a command was typed."""
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(Text.from_ansi(f"$ {command}\n{printed.rstrip()}"))
    console.save_svg(str(file), title="EdgeFlare", theme=MONOKAI, code_format=SVG)


def photograph_report(page: Path, file: Path) -> None:
    """Write a PNG of a report: its verdict, and the first cards of its gallery."""
    whole = page.with_suffix(".png")
    subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--window-size={WIDTH},{CARDS[1]}",
            f"--screenshot={whole}",
            page.as_uri(),
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    pixels = np.asarray(cv2.imread(str(whole)))
    rows = np.r_[slice(*VERDICT), slice(*CARDS)]
    cv2.imwrite(str(file), pixels[rows], [cv2.IMWRITE_PNG_COMPRESSION, 9])


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        printed = edgeflare("demo", "--out", "demo", folder=folder)
        draw_terminal("edgeflare demo --out demo", printed, FOLDER / "terminal.svg")
        edgeflare("report", "demo", folder=folder)
        photograph_report(folder / "demo" / "report.html", FOLDER / "report.png")


if __name__ == "__main__":
    main()
