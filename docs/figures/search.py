"""Draws the figures of the page "How the search works": python docs/figures/search.py

They are sketches of the space of inputs, not measurements. The SVG files lie beside this script.
Each has a background of its own and so is readable on light and dark pages.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

Point = tuple[float, float]

WIDTH = 760
PANEL = 360
HEIGHT = 250
TOP = 44
LINE = 21

STYLE = """
.card { fill: #fbfbfd; stroke: #c9ced6 }
.panel { fill: #eef1f6; stroke: #c9ced6 }
.gap { fill: #f4c7b5; stroke: none }
text { font: 16px sans-serif; fill: #1f2430 }
.title { font-weight: bold }
.small { font-size: 15px; fill: #4a5160 }
.original { fill: none; stroke: #1f5fa8; stroke-width: 3 }
.deployed { fill: none; stroke: #b3461b; stroke-width: 3; stroke-dasharray: 9 6 }
.way { fill: none; stroke: #5b6473; stroke-width: 1.8 }
.mark { fill: #fbfbfd; stroke: #1f2430; stroke-width: 2 }
.seed { fill: #1f2430 }
.trigger { fill: #c2260f; stroke: #fbfbfd; stroke-width: 1.5 }
.head { fill: #5b6473 }
@media (prefers-color-scheme: dark) {
  .card { fill: #171a20; stroke: #3c4350 }
  .panel { fill: #20252e; stroke: #3c4350 }
  .gap { fill: #5d3325 }
  text { fill: #e8ebf1 }
  .small { fill: #b6bdca }
  .original { stroke: #6fb1ff }
  .deployed { stroke: #ff9c6b }
  .way { stroke: #a3acbb }
  .mark { fill: #171a20; stroke: #e8ebf1 }
  .seed { fill: #e8ebf1 }
  .trigger { fill: #ff6a4d; stroke: #171a20 }
  .head { fill: #a3acbb }
}
"""


def text(at: Point, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return one line of text."""
    return f'<text x="{at[0]:g}" y="{at[1]:g}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def line(points: Iterable[Point], kind: str, *, arrow: bool = False) -> str:
    """Return straight lines through points."""
    joined = " ".join(f"{x:g},{y:g}" for x, y in points)
    end = ' marker-end="url(#arrow)"' if arrow else ""
    return f'<polyline points="{joined}" class="{kind}"{end}/>'


def area(points: Iterable[Point]) -> str:
    """Return the area in which the models decide differently."""
    return f'<polygon points="{" ".join(f"{x:g},{y:g}" for x, y in points)}" class="gap"/>'


def dot(at: Point, kind: str, radius: float = 6) -> str:
    """Return an input: "mark" where both models agree, "trigger", or "seed"."""
    return f'<circle cx="{at[0]:g}" cy="{at[1]:g}" r="{radius:g}" class="{kind}"/>'


def panel(left: float, title: str, content: Sequence[str], captions: Sequence[str]) -> str:
    """Return a panel with a title above and lines of text below."""
    below = [
        text((0, HEIGHT + LINE * (number + 1)), words, "small")
        for number, words in enumerate(captions)
    ]
    return "\n".join(
        [
            f'<g transform="translate({left:g} {TOP})">',
            text((0, -14), title, "title"),
            f'<rect width="{PANEL - 10}" height="{HEIGHT}" rx="6" class="panel"/>',
            *content,
            *below,
            "</g>",
        ]
    )


def legend(top: float) -> str:
    """Return what lines and dots mean."""
    return "\n".join(
        [
            f'<g transform="translate(20 {top:g})">',
            line([(0, -5), (34, -5)], "original"),
            text((42, 0), "original's boundary", "small"),
            line([(206, -5), (242, -5)], "deployed"),
            text((250, 0), "deployed model's boundary", "small"),
            dot((474, -5), "mark"),
            text((488, 0), "both agree", "small"),
            dot((594, -5), "trigger"),
            text((608, 0), "triggering input", "small"),
            "</g>",
        ]
    )


def figure(name: str, description: str, content: Sequence[str], lines: int) -> None:
    """Write a figure of two panels; `lines`: the number of lines of text below each."""
    bottom = TOP + HEIGHT + LINE * lines + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 16}" role="img">',
        f"<title>{description}</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="arrow" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7"',
        ' orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" class="head"/></marker></defs>',
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{bottom + 14}" rx="8" class="card"/>',
        *content,
        legend(bottom),
        "</svg>",
    ]
    Path(__file__).with_name(name).write_text("\n".join(parts) + "\n", encoding="utf-8")


def reach() -> list[str]:
    """Draw how the host finds the original's boundary."""
    seed, crossing, beyond = (64.0, 130.0), (222.0, 98.0), (274.0, 88.0)
    steps = [(0, -30), (21, -21), (30, 0), (21, 21), (0, 30), (-21, 21), (-30, 0), (-21, -21)]
    probes = [(seed[0] + x, seed[1] + y) for x, y in steps]
    return [
        '<path d="M250,0 C190,70 258,150 214,250" class="original"/>',
        *(line([seed, one], "way") for one in probes),
        line([seed, beyond], "way"),
        *(dot(one, "mark", 4) for one in (beyond, (169, 109), (245, 93), (208, 101), crossing)),
        dot(seed, "seed", 7),
        text((46, 190), "seed"),
        text((16, 30), "original: 3"),
        text((258, 225), "original: 5"),
    ]


def ask() -> list[str]:
    """Draw the device's first answers beside that boundary."""
    first, second = (148.0, 118.0), (203.0, 131.0)
    return [
        area([(190, 0), (262, 0), (222, 250), (150, 250)]),
        line([(190, 0), (150, 250)], "original"),
        line([(262, 0), (222, 250)], "deployed"),
        line([(163, 121), (189, 128)], "way", arrow=True),
        dot(first, "mark"),
        dot(second, "trigger", 7),
        text((12, 70), "1st query:"),
        text((12, 91), "both say 3"),
        text((250, 150), "2nd query:"),
        text((250, 171), "original 5,"),
        text((250, 192), "device 3"),
    ]


def three() -> list[str]:
    """Draw where three classes tie."""
    ours, theirs = (165.0, 140.0), (205.0, 100.0)
    left, right = 87 / 170, 92 / 180
    ours_left, ours_right = (0.0, 140 + 165 * left), (350.0, 140 + 185 * right)
    theirs_left, theirs_right = (0.0, 100 + 205 * left), (350.0, 100 + 145 * right)
    return [
        area(
            [
                *((165, 0), (205, 0), theirs, theirs_right, ours_right),
                *(ours, ours_left, theirs_left, (165, 100 + 40 * left)),
            ]
        ),
        line([(165, 0), ours, ours_left], "original"),
        line([ours, ours_right], "original"),
        line([(205, 0), theirs, theirs_left], "deployed"),
        line([theirs, theirs_right], "deployed"),
        dot((146, 139), "trigger", 7),
        dot((183, 131), "trigger", 7),
        dot((165, 164), "mark"),
        text((16, 30), "both: 3"),
        text((272, 30), "both: 5"),
        text((136, 232), "both: 8"),
    ]


def severe() -> list[str]:
    """Draw a climb to where the drift is large."""
    solid = "M120,0 C132,80 132,170 116,250"
    return [
        f'<path d="{solid} L144,250 C160,215 300,170 262,80 C250,52 240,30 240,0 z" class="gap"/>',
        f'<path d="{solid}" class="original"/>',
        '<path d="M240,0 C240,30 250,52 262,80 C300,170 160,215 144,250" class="deployed"/>',
        line([(128, 226), (150, 204), (160, 168), (188, 138)], "way", arrow=True),
        *(dot(one, "trigger", 5) for one in ((128, 226), (150, 204), (160, 168))),
        dot((196, 124), "trigger", 8),
        line([(134, 84), (257, 84)], "way", arrow=True),
        line([(257, 84), (134, 84)], "way", arrow=True),
        text((197, 74), "drift e", anchor="middle"),
        text((12, 231), "first trigger"),
        text((16, 30), "both: 3"),
        text((286, 30), "both: 5"),
    ]


def loop() -> list[str]:
    """Draw the steps of a mutation search."""
    steps = [
        "parent: at first the seed",
        "one operator changes it",
        "both models answer",
        "another class? confirm, end",
        "mutant replaces the parent?",
    ]
    content = []
    for number, words in enumerate(steps):
        top = 16 + 47 * number
        content += [
            f'<rect x="54" y="{top}" width="240" height="31" rx="5" class="card"/>',
            text((174, top + 21), words, anchor="middle"),
        ]
        if number:
            content.append(line([(174, top - 16), (174, top - 1)], "way", arrow=True))
    return [*content, line([(54, 220), (28, 220), (28, 31), (53, 31)], "way", arrow=True)]


def walk() -> list[str]:
    """Draw the inputs that a mutation search asks about."""
    parents = [(70, 140), (92, 108), (76, 74), (118, 60), (140, 96), (112, 150), (134, 190)]
    parents += [(176, 172), (198, 130), (186, 84), (210, 52)]
    rejected = [(48, 112), (62, 92), (98, 44), (158, 66), (100, 176), (160, 214), (196, 198)]
    rejected += [(168, 112), (214, 98), (88, 128), (150, 140)]
    found = (240.0, 82.0)
    return [
        '<path d="M238,0 C214,70 262,150 226,250 L256,250 C286,150 240,70 262,0 z" class="gap"/>',
        '<path d="M238,0 C214,70 262,150 226,250" class="original"/>',
        '<path d="M262,0 C240,70 286,150 256,250" class="deployed"/>',
        line([*parents, found], "way"),
        *(dot(one, "mark", 4.5) for one in (*rejected, *parents[1:])),
        dot((70, 140), "seed", 7),
        dot(found, "trigger", 7),
        text((22, 168), "seed"),
        text((16, 30), "both: 3"),
        text((286, 30), "both: 5"),
    ]


def main() -> None:
    """Write all figures."""
    right = PANEL + 30
    figure(
        "boundary-first.svg",
        "The boundary search up to its first triggering input",
        [
            panel(
                20,
                "1. On the host: reach the boundary",
                reach(),
                ["Small steps give the shortest way.", "Inputs on both sides narrow it down."],
            ),
            panel(
                right,
                "2. On the device: ask beside it",
                ask(),
                ["The first answer tells the drift,", "and so on which side to ask next."],
            ),
        ],
        2,
    )
    figure(
        "boundary-further.svg",
        "A tie of three classes, and the search for a severe triggering input",
        [
            panel(
                20,
                "Three classes tie",
                three(),
                ["The device says 8 at all three inputs,", "the original at one: two trigger."],
            ),
            panel(
                right,
                "With a budget: larger margins",
                severe(),
                ["Where the drift is large, the input in", "the middle has the largest margins."],
            ),
        ],
        2,
    )
    figure(
        "dflare.svg",
        "DFLARE: a mutation search",
        [
            panel(
                20,
                "A round asks the device once at most",
                loop(),
                ["A new round begins with the parent."],
            ),
            panel(
                right, "The inputs asked about", walk(), ["Joined ones were parents of the next."]
            ),
        ],
        1,
    )


if __name__ == "__main__":
    main()
