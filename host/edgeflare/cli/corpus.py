"""``corpus add``, ``show`` and ``remove``."""

import shlex
from typing import TYPE_CHECKING

import typer

from edgeflare.cli.options import Json, command
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare.cli.settings import CorpusAddSettings, CorpusRemoveSettings, CorpusSettings

app = typer.Typer(
    no_args_is_help=True,
    help="Keep the triggers of many campaigns in one folder, to replay them on every new model.",
)


@command(app, "CorpusAddSettings")
def add(settings: "CorpusAddSettings", json: Json = False) -> None:
    """Add the confirmed triggers of campaigns; of a replay, also the results of stored ones."""
    from edgeflare.analysis import add_to_corpus
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import additions_document

    corpus, additions = settings.corpus, []
    try:
        for campaign in settings.campaigns:
            addition = add_to_corpus(
                corpus,
                campaign,
                model=settings.name,
                per_pair=settings.per_pair,
                database=settings.store,
                samples=settings.samples,
            )
            additions.append(addition)
            for notice in addition.notices:
                echo_err(f"note: {notice}")
    finally:
        if additions:
            values = {
                "corpus": str(corpus),
                "entries": additions[-1].entries,
                "campaigns": [addition.to_json() for addition in additions],
            }
            print_result(json, lambda: values, lambda: additions_document(corpus, additions))


@command(app, "CorpusSettings")
def show(settings: "CorpusSettings", json: Json = False) -> None:
    """Show what a corpus has: entries, class pairs, the last answers of each model and device."""
    from edgeflare.analysis import corpus_summary
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import corpus_document

    summary = corpus_summary(settings.corpus)
    print_result(json, summary.to_json, lambda: corpus_document(summary))


@command(app, "CorpusRemoveSettings")
def remove(settings: "CorpusRemoveSettings", json: Json = False) -> None:
    """Remove triggers from a corpus, and the files nobody refers to any more."""
    from edgeflare.analysis import remove_from_corpus
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import removed_document

    corpus, pair, dry_run = settings.corpus, settings.pair, settings.dry_run
    removed = remove_from_corpus(
        corpus,
        model=settings.model,
        pair=None if pair is None else _class_pair(pair),
        fixed_for=settings.fixed_for,
        dry_run=dry_run,
    )
    print_result(
        json,
        lambda: {**removed._asdict(), "dry_run": dry_run},
        lambda: removed_document(removed, dry_run=dry_run),
    )
    if pair is not None and not removed.entries:
        show = shlex.join(["edgeflare", "corpus", "show", str(corpus), "--json"])
        echo_err(f"note: no trigger is of the pair {pair}; `{show}` has those that there are")


def _class_pair(text: str) -> tuple[int, int]:
    from edgeflare import UsageError

    try:
        original, deployed = map(int, text.split(","))
    except ValueError as error:
        raise UsageError(
            f"--pair {text!r} is no pair of classes; give two class indices as in --pair 4,9"
        ) from error
    return original, deployed
