"""Makes the pictures of the documentation from real campaigns, those of the demo.

    python docs/pictures.py     # writes docs/pictures/; needs Chromium, its driver and selenium

The demo's seeds are MNIST digits; host/edgeflare/assets/demo/NOTICE.txt has their licence.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text
from selenium import webdriver

FOLDER = Path(__file__).resolve().parent / "pictures"
WIDTH = 1100
"""Of the report's window, in CSS pixels."""
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


def photograph_report(page: Path, file: Path, *, verdict: bool = True) -> None:
    """Write a PNG of a report: its verdict without the figures, and the first cards of its gallery.

    Without a `verdict` the cards alone.
    """
    options = webdriver.ChromeOptions()
    for flag in ("headless", "no-sandbox", "hide-scrollbars", "force-device-scale-factor=1"):
        options.add_argument(f"--{flag}")
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as driver:
        driver.set_window_size(WIDTH, 4000)
        driver.get(page.as_uri())
        figures, top, bottom = driver.execute_script(
            "const [facts, card] = ['.verdict .facts', '.card'].map("
            "  (one) => document.querySelector(one).getBoundingClientRect());"
            "return [facts.top, card.top, card.bottom]"
        )
        encoded = np.frombuffer(driver.get_screenshot_as_png(), np.uint8)
    pixels = np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR))
    rows = np.r_[0 : int(figures) - 8 if verdict else 0, int(top) - 16 : int(bottom) + 16]
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
        edgeflare("demo", "--task", "detection", "--out", "digits", folder=folder)
        edgeflare("report", "digits", folder=folder)
        page = folder / "digits" / "report.html"
        photograph_report(page, FOLDER / "detections.png", verdict=False)


if __name__ == "__main__":
    main()
