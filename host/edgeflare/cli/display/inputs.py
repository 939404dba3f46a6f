"""What is found of both models' preprocessing, in words."""

import re
import shlex

from edgeflare._internal.text import counted, percent_text
from edgeflare.campaign import FoundInputs, InputPair
from edgeflare.models import InputSpec, stated_options
from edgeflare.reports import Block, Column, CommandLine, Item, Listing, Table, Text

_SHOWN = 8
_NEARLY = 0.02
"""Two ways whose scores differ by less can't be told apart."""
_HARDLY_RIGHT = 0.2
"""A model is right on more of its labelled seeds where labels and classes are the same thing."""


def inputs_document(found: FoundInputs) -> list[Block]:
    """Return the likeliest preprocessing, the flags that state it, and what comes next."""
    best, *others = found.pairs[:_SHOWN]
    near = [one for one in others if best.score - one.score < _NEARLY]
    of_accuracy = [] if best.accuracy is None else [Column("accuracy", 0, _accuracy)]
    columns = (
        Column("original", 0, lambda one: _words(one.original), text=True),
        Column("deployed", 0, _deployed, text=True),
        Column("same class", 0, lambda one: percent_text(one.agreement)),
        Column("distance", 0, lambda one: f"{one.distance:.3f}"),
        *of_accuracy,
        Column("information", 1, lambda one: f"{one.information:.2f}"),
        Column("score", 2, lambda one: f"{one.score:.3f}"),
    )
    about = (
        f"{counted(found.seeds, 'seed')} ({found.labelled} labelled); on {found.device} "
        f"{counted(found.device_queries, 'device query', 'device queries')}, original "
        f"{found.original_queries}; read as {found.task}"
    )
    notes = []
    if near:
        notes.append(
            f"{counted(len(near), 'other way is', 'other ways are')} about as likely: look at the "
            "table, and state the one that the models were trained with"
        )
    if best.accuracy is not None and best.accuracy < _HARDLY_RIGHT:
        notes.append(
            "the outputs were read as scores of classes, by which no way is right on more than "
            f"{percent_text(max(pair.accuracy or 0 for pair in found.pairs))} of the labelled seeds: state "
            "--task embedding if they are embeddings, else look at the labels"
        )
    # with labels the accuracy tells such ways apart
    alike = [
        _words(one.original) for one in others if best.accuracy is None and _is_alike(one, best)
    ]
    if alike:
        notes.append(
            f"with {' or '.join(alike)} both models agree as well: without labels that can't be told from "
            f"{_words(best.original)}"
        )
    if not found.labelled:
        notes.append(
            "without labels, that both models are wrong alike is told less surely: seeds with "
            "labels tell it by the accuracy"
        )
    return [
        Text(_verdict(found), "strong"),
        Text("To state it:"),
        CommandLine(shlex.join(["edgeflare", "run", "...", *best.flags()])),
        Table(columns, [best, *others], about),
        Listing(tuple(Item(note, "warn", "note:") for note in notes)),
    ]


def _is_alike(one: InputPair, best: InputPair) -> bool:
    """Whether both models agree about as well with both of them changed."""
    changed = one.original != best.original and one.deployed != best.deployed
    return (
        changed
        and one.distance < best.distance + _NEARLY
        and best.agreement - one.agreement < _NEARLY + 1e-9
    )


def _verdict(found: FoundInputs) -> str:
    if found.stated is None:
        return "The files and flags don't tell the preprocessing; the likeliest comes first."
    changes = found.changes()
    if not changes:
        return "The stated preprocessing is the likeliest of all that were tried."
    return f"Another preprocessing is likelier than the stated one: {'; '.join(changes)}."


def _words(spec: InputSpec) -> str:
    return " ".join(f"{name}={_short(value)}" for name, value in stated_options(spec).items())


def _deployed(one: InputPair) -> str:
    original, deployed = (_words(of) for of in one[:2])
    return "the same" if deployed == original else deployed


def _short(value: str) -> str:
    """Return numbers with six digits: as they are typed, and quotients short."""
    return re.sub(r"\d+[.]\d+", lambda found: f"{float(found[0]):.6g}", value)


def _accuracy(one: InputPair) -> str:
    return percent_text(one.accuracy)
