"""The inputs of a replay in the page's gallery, each with its state and its seed input."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from edgeflare.analysis.findings import Finding
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.campaign.replay.results import ReplayedInput, stored_replay
from edgeflare.document import Name
from edgeflare.errors import StoreError
from edgeflare.reports.html.gallery import STATE_WORDS, Card, card
from edgeflare.reports.replay import replayed_words
from edgeflare.store import Store, open_store
from edgeflare.types import Sample

_MOST_SOURCES = 100


class ReplayCards:
    """Makes the cards of a replay; `store` is the replay's, `name` returns a class's name.

    `seeds` is the campaign that the inputs were found in, None where it is not there any more.
    """

    def __init__(
        self,
        store: Store,
        summary: ReplaySummary,
        seeds: Store | None,
        name: Name,
    ) -> None:
        self._store = store
        self._seeds = seeds
        self._name = name
        self._inputs = {one.place: one for one in summary.inputs}
        wanted = {one.seed_id for one in summary.inputs if one.kind == "trigger"}
        self._samples = (
            {one.id: one.sample for one in seeds.seeds() if one.id in wanted} if seeds else {}
        )

    def card(self, finding: Finding) -> Card | None:
        """Return the card of an input, None for one that agrees as before."""
        one = self._inputs.get(finding.outcome.place)
        if one is None or one.state not in STATE_WORDS:
            return None
        made = card(_now(finding, one))
        made.row.replayed = {
            "state": one.state,
            "kind": one.kind,
            "seed": one.seed_id,
            "words": replayed_words(one, self._name),
        }
        for answers in (made.row.transcripts, made.row.detections):
            if answers is not None:
                answers["seed"] = None  # what is a seed in a replay's folder is the input itself
        pair, device, _ = made.group
        seed = self._samples.get(one.seed_id, one.sample) if one.kind == "trigger" else one.sample
        return made._replace(
            group=(pair, device, one.state),
            rank=list(STATE_WORDS).index(one.state),
            seed=seed,
            trigger=one.sample,
        )

    def read(self, digest: str) -> Sample:
        """Return a sample of the replay, or of the campaign. Raises StoreError."""
        try:
            return self._store.get_sample(digest)
        except StoreError:
            if self._seeds is None:
                raise
            return self._seeds.get_sample(digest)


@contextmanager
def seeds_of(store: Store) -> Iterator[Store | None]:
    """Open a replay's campaign and the replays in between; None for a corpus or if deleted."""
    with ExitStack() as stack:
        yield _found_in(store, stack)


def _found_in(store: Store, stack: ExitStack) -> Store | None:
    for _ in range(_MOST_SOURCES):
        source = stored_replay(store).source
        if source.kind == "corpus":
            return None
        try:
            store = stack.enter_context(open_store(Path(source.folder)))
        except StoreError:
            return None
        if store.id != source.campaign:
            return None
        if not store.state.is_replay:
            return store
    return None


def _now(finding: Finding, one: ReplayedInput) -> Finding:
    """Return a finding with both models' present answers and its search's distance."""
    outcome = finding.outcome
    original, deployed = outcome.original, outcome.deployed
    if deployed is None and finding.seed.outputs is not None:
        original, deployed = finding.seed.outputs.original, finding.seed.outputs.deployed
    present = replace(
        outcome,
        original=original,
        deployed=deployed,
        original_label=one.original_label,
        deployed_label=one.deployed_label,
        device_name=one.device,
        l2=one.l2 if one.kind == "trigger" else None,
        linf=None,
        snr_db=None,
    )
    return replace(finding, outcome=present)
