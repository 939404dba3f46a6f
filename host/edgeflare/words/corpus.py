"""What is to be known of a campaign that was added to a corpus, in words."""

from edgeflare.analysis.corpus import CorpusAddition


def addition_notices(addition: CorpusAddition) -> tuple[str, ...]:
    """Return what a user should know of an addition, without full stops."""
    folder, source = addition.folder, addition.source
    notices = []
    if addition.unfinished:
        notices.append(f"{folder} is not finished: what it found so far was added")
    if addition.another_original:
        notices.append(
            f"the original model of {folder} is another file than the corpus' triggers were found "
            "with so far: if it is not the same network retrained, keep a corpus of its own for it"
        )
    if addition.unplaced:
        notices.append(
            f"{addition.unplaced} triggers of the replay {folder} were not added, since their seed "
            f"inputs are not there any more: {source} can't be opened"
        )
    if count := addition.unknown_fixed:
        triggers = "1 trigger that is" if count == 1 else f"{count} triggers that are"
        notices.append(
            f"{triggers} fixed in {folder}: the corpus knows nothing of "
            f"{'it' if count == 1 else 'them'} yet; add the campaign {source}, then {folder} again"
        )
    return tuple(notices)
