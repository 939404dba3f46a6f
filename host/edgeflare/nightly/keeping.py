"""Update of a history's corpora by a night, once it is green or accepted as the new baseline.

While a model is red its corpus stays as it was in the last green night, so that what came back is new every
night until it is mended. The triggers of the red nights are added then, too.
"""

from collections.abc import Callable
from pathlib import Path

from edgeflare.analysis.corpus import add_to_corpus, note_replay
from edgeflare.nightly.history import History
from edgeflare.nightly.night import Night, NightRun


def learn(history: History, night: Night, run: NightRun, tell: Callable[[str], None]) -> None:
    """Add the triggers of a green run, and of the red ones since the green one before, to the model's corpus.

    The results of this run's replay are added to its entries; `tell` is called with each notice.
    Raises StoreError, and UsageError where the inputs are of another form than before.
    """
    corpus = history.corpus(run.model)
    for search in [*_red_since_green(history, night, run), night.campaign(run)]:
        addition = add_to_corpus(corpus, search, model=run.model)
        for notice in addition.notices:
            tell(notice)
    if night.replayed(run).is_dir():
        note_replay(corpus, night.replayed(run), model=run.model)


def _red_since_green(history: History, night: Night, run: NightRun) -> list[Path]:
    """Return the searches of the nights between this one and the last green one, the oldest first."""
    found: list[Path] = []
    for earlier in reversed(history.nights()):
        other = earlier.run(run.model, run.device)
        if earlier.number >= night.number or other is None:
            continue
        if other.is_baseline:
            break
        folder = earlier.campaign(other)
        if other.search is not None and folder.is_dir():
            found.append(folder)
    return found[::-1]
