"""``corpus add``, ``show`` and ``remove``."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.options import ADDRESS, Json, folder
from edgeflare.cli.terminal import echo_err, with_exit_codes

app = typer.Typer(
    no_args_is_help=True,
    help="Keep the triggers of many campaigns in one folder, to replay them on every new model.",
)

Corpus = Annotated[Path, typer.Argument(help="A corpus' folder.")]


@app.command()
@with_exit_codes
def add(
    corpus: Annotated[Path, typer.Argument(help="A corpus' folder; made where there is none.")],
    campaign: Annotated[
        list[Path],
        typer.Argument(parser=folder, help=f"Folders of campaigns or replays; or {ADDRESS}."),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What the deployed model is called in the corpus; default: its file's name.",
        ),
    ] = None,
    per_pair: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Keep up to N triggers of one seed input and class pair from now on (3 in a new "
            "corpus).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Add the confirmed triggers of campaigns; of a replay, also the results of stored ones."""
    from edgeflare.analysis import add_to_corpus
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import additions_document

    additions = []
    try:
        for folder in campaign:
            addition = add_to_corpus(corpus, folder, model=name, per_pair=per_pair)
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


@app.command()
@with_exit_codes
def show(corpus: Corpus, json: Json = False) -> None:
    """Show what a corpus has: entries, class pairs, the last answers of each model and device."""
    from edgeflare.analysis import corpus_summary
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import corpus_document

    summary = corpus_summary(corpus)
    print_result(json, summary.to_json, lambda: corpus_document(summary))


@app.command()
@with_exit_codes
def remove(
    corpus: Corpus,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="What only this deployed model showed.")
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="Those the original calls class A and the deployed model B."
        ),
    ] = None,
    fixed_for: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="DAYS",
            help="Those that nothing deviated on for this number of days, by the last look of each "
            "device.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would go, and remove nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove triggers from a corpus, and the files nobody refers to any more."""
    from edgeflare.analysis import remove_from_corpus
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import removed_document

    removed = remove_from_corpus(
        corpus,
        model=model,
        pair=None if pair is None else _class_pair(pair),
        fixed_for=fixed_for,
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
