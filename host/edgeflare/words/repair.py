"""What is said while a repair, or another quantisation, is made and searched again."""

from collections.abc import Sequence

from edgeflare._internal.text import counted, duration


def cost_text(searches: int, seeds: int, queries: int, latency_s: float | None) -> str:
    """Return what so many new searches may cost, of `queries` of the device at most each."""
    most = searches * queries
    text = (
        f"{counted(searches, 'new search', 'new searches')} of {counted(seeds, 'seed')}, with "
        f"{queries:,} device queries at most: {most:,} together"
    )
    if latency_s is not None:
        text += f", {duration(most * latency_s)} of the device at {duration(latency_s)} each"
    return f"{text}; --total-queries N sets another bound, --no-search leaves them out"


def run_otherwise(runtime: str, present: str, options: dict[str, object]) -> str:
    """Return that candidates are run by another runtime than the `present` model, without its options."""
    words = f"the recipes' models are run by {runtime}, the model {present} isn't"
    if options:
        stated = ", ".join(f"{name}={value}" for name, value in options.items())
        words += f"; its options ({stated}) don't apply to them"
    return words


NOT_EXPLAINED = "run `edgeflare explain {}` first to try operators in float"
LAYERS_OF_ANOTHER = (
    "no operators are tried in float: the explanation's are those of {}, not of {}; explain without "
    "--float-model to try them"
)
TOO_MUCH = "{} isn't tried in float: it stands for most of the network"
NO_HEAD = "the head isn't tried apart: {}"
NOT_MADE = "{} can't be made, the others go on: {}"
NO_LAYERS = "no operators are tried in float: the explanation names no layers of the file"
CALIBRATED = "recipes are calibrated on seed inputs that the search begins from"
GOES_ON = "{}; the same command goes on with it"
"""What follows the notice of a search that ended before."""
HEAD_WORDS = {
    "head": "what comes after the last weights: boxes and scores are quantised apart",
    "head, weights": "the last weights and what comes after them",
}
"""What is in float by the recipes of heads."""


def in_float_words(names: Sequence[str]) -> list[str]:
    """Return the layers that a recipe leaves in float, the ends of a head in words."""
    return [HEAD_WORDS.get(name, name) for name in names]


def source_text(source: str) -> str:
    """Return the source of deviations: a strategy, or the half that a threshold isn't taken from."""
    if source == "other half":
        return "the other half's triggering inputs"
    return f"a fresh search by {source}"
