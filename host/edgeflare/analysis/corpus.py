"""A trigger corpus fed with campaigns and replays, and told in figures."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from edgeflare.analysis.corpus_sightings import (
    Findings,
    check_classes,
    form_of,
    found_in_campaign,
    found_in_replay,
    is_replay,
    looks_of,
    model_name,
)
from edgeflare.analysis.opening import opened
from edgeflare.campaign.replay_states import replay_fact, replayed_inputs
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.store.corpus import Corpus
from edgeflare.store.corpus_records import Added, CorpusCampaign, CorpusRemoved


@dataclass(frozen=True)
class CorpusAddition:
    """What became of a campaign's, or a replay's, confirmed triggers in a corpus.

    `new` are entries now, `replaced` those that had to go for them; `known` were there to the bit, `near`
    are near duplicates that found no place. `noted` counts the inputs of a replay whose entries were
    told what became of them. `entries` is how many the corpus has now.
    """

    folder: str
    campaign: str
    new: int
    replaced: int
    known: int
    near: int
    noted: int
    entries: int
    notices: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        return {**asdict(self), "notices": list(self.notices)}


def add_to_corpus(
    corpus: Corpus | Path,
    campaign: Store | Path,
    *,
    model: str | None = None,
    per_pair: int | None = None,
) -> CorpusAddition:
    """Add every confirmed trigger of a campaign to a corpus, which is made where there is none.

    One that still runs gives what it found so far. Of a replay the triggers that the corpus lacks are
    added, and its entries are told what became of them, as `note_replay` does. The same again changes
    nothing. `model` is what the deployed model is called in the corpus, with the device the target of a
    replay; None: by its file's name. `per_pair` is how many entries one seed input and class pair may
    have from now on; None: 3 for a new corpus, else what it has.

    Raises UsageError where the inputs' shape or the number of classes is another than the corpus', or the models are
    speech recognisers, which have no classes, and StoreError.
    """
    with opened(campaign) as store:
        check_classes(store)
        name = model or model_name(store)
        with _in_corpus(corpus, per_pair) as into:
            if not is_replay(store):
                return _add(into, store, found_in_campaign(store, name), name)
            with found_in_replay(store, name) as found:
                entries = into.known(sighting.sample for sighting in found.sightings)
                lacking = [one for one in found.sightings if one.sample not in entries]
                addition = _add(into, store, replace(found, sightings=lacking), name)
            noted = into.note(looks_of(store, name))
            notices = (*addition.notices, *_unknown_fixed(into, store))
            return replace(addition, noted=noted, notices=notices)


def note_replay(corpus: Corpus | Path, replay: Store | Path, *, model: str | None = None) -> int:
    """Tell a corpus' entries what became of them in a replay; return how many inputs were of an entry.

    So what deviated is fixed, and what comes back after that is new, in the next replay. Inputs that
    deviated, but not each time, that gave NaN or infinity, or on which a device could not answer leave
    their entries as they were. `model` is what the deployed model is called in the corpus; None: by its
    file's name. Raises StoreError where it is no replay, or a folder can't be used, UsageError for transcripts.
    """
    with opened(replay) as store, _in_corpus(corpus, create=False) as into:
        replay_fact(store)
        check_classes(store)
        return into.note(looks_of(store, model or model_name(store)))


def remove_from_corpus(
    corpus: Corpus | Path,
    *,
    model: str | None = None,
    pair: tuple[int, int] | None = None,
    fixed_for: float | None = None,
    dry_run: bool = False,
) -> CorpusRemoved:
    """Remove entries of a corpus, and the samples nobody refers to any more; return what went.

    Exactly one of `model`, `pair` and `fixed_for` (days) says which; see `Corpus.remove`. Raises
    UsageError, also for a model that the corpus doesn't know, and StoreError.
    """
    with _in_corpus(corpus, create=False) as into:
        if model is not None:
            _check_model(into, model)
        return into.remove(model=model, pair=pair, fixed_for=fixed_for, dry_run=dry_run)


def _check_model(corpus: Corpus, model: str) -> None:
    """Raise UsageError for a deployed model that nothing is known of."""
    known = corpus.models()
    if model in known:
        return
    names = sorted({*known, *(look.model for look in corpus.looks())})
    if model not in names:
        there = f"it knows {', '.join(names)}" if names else "it knows none yet"
        raise UsageError(f"the corpus {corpus.folder} knows no deployed model {model!r}: {there}")


def _add(corpus: Corpus, store: Store, found: Findings, model: str) -> CorpusAddition:
    notices = _notices(corpus, store, found)
    added = Added(0, 0, 0, 0)
    if found.sightings:
        first = found.sightings[0]
        about = CorpusCampaign(
            store.id,
            model,
            first.original_sha256,
            first.deployed_sha256,
            datetime.now(timezone.utc),
            triggers=len(found.sightings),
            near=0,
        )
        form = form_of(store, found.read(first.sample))
        added = corpus.add(found.sightings, form, found.read, campaign=about)
    return CorpusAddition(
        str(store.folder),
        store.id,
        *added,
        noted=0,
        entries=len(corpus),
        notices=notices,
    )


def _unknown_fixed(corpus: Corpus, store: Store) -> tuple[str, ...]:
    """Tell of fixed triggers of a replay whose campaign was not added yet, so that nothing can be noted."""
    source = replay_fact(store)["source"]
    added = {campaign.id for campaign in corpus.campaigns()}
    if source["kind"] != "campaign" or source.get("campaign") in added:
        return ()
    fixed = {
        one.sample
        for one in replayed_inputs(store)
        if one.state == "fixed" and one.kind == "trigger"
    }
    count = len(fixed - set(corpus.known(fixed)))
    if not count:
        return ()
    told = "1 trigger that is" if count == 1 else f"{count} triggers that are"
    text = (
        f"{told} fixed in {store.folder}: the corpus knows nothing of {'it' if count == 1 else 'them'} yet; "
        f"add the campaign {source['folder']}, then {store.folder} again"
    )
    return (text,)


def _notices(corpus: Corpus, store: Store, found: Findings) -> tuple[str, ...]:
    notices = []
    if not store.fact("finished"):
        notices.append(f"{store.folder} is not finished: what it found so far was added")
    originals = {campaign.original_sha256 for campaign in corpus.campaigns()}
    if found.sightings and originals and found.sightings[0].original_sha256 not in originals:
        notices.append(
            f"the original model of {store.folder} is another file than the corpus' triggers were found "
            "with so far: if it is not the same network retrained, keep a corpus of its own for it"
        )
    if found.unplaced:
        notices.append(
            f"{found.unplaced} triggers of the replay {store.folder} were not added, since their seed "
            f"inputs are not there any more: {replay_fact(store)['source']['folder']} can't be opened"
        )
    return tuple(notices)


@contextmanager
def _in_corpus(
    corpus: Corpus | Path, per_pair: int | None = None, *, create: bool = True
) -> Iterator[Corpus]:
    """Give the open corpus; close it afterwards only if it was opened here."""
    if isinstance(corpus, Corpus):
        if per_pair is not None:
            corpus.set_per_pair(per_pair)
        yield corpus
        return
    with Corpus.open(corpus, create=create, per_pair=per_pair) as into:
        yield into
