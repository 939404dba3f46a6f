"""Whether a model got worse since the last green night."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgeflare._internal.text import capitalized
from edgeflare.analysis.limits import check_limits
from edgeflare.analysis.outcome_stats import kind_rate
from edgeflare.analysis.ranking.paired_tests import TIE
from edgeflare.analysis.ranking.ranking import rank_campaigns
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.answers.detections.words import with_names
from edgeflare.answers.parts import Name
from edgeflare.campaign.pair.health import unusable_answers
from edgeflare.campaign.resolution import STRATEGY, resolved_as_in
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.nightly.history import Baseline
from edgeflare.nightly.night import Check, Identity, SearchFigures
from edgeflare.store import Store
from edgeflare.words import nightly as words
from edgeflare.words.ranking import compared

_BROKEN = ("nonfinite", "failed")
_TONIGHT = "tonight's model"


def search_checks(campaign: Path) -> list[Check]:
    """Check a night's search against the campaign's own limits."""
    return [
        Check(
            part="search",
            name=limit.name,
            words=limit.words,
            crossed=limit.crossed,
            undecided=limit.undecided,
        )
        for limit in check_limits(campaign)
        if limit.checked
    ]


def answers_checks(campaign: Path) -> list[Check]:
    """Return a crossed check for each model whose answers can't be used, whatever the limits.

    Such a search compares with no other night's: a constant or tied answer is hard to make deviate.
    """
    with Store.open(campaign) as store:
        return [
            Check(
                part="search",
                name=problem.kind,
                words=capitalized(problem.words),
                crossed=True,
            )
            for problem in unusable_answers(store)
        ]


def replay_checks(
    replays: Sequence[ReplaySummary], at_most: int, since: str, name: Name = str
) -> list[Check]:
    """Check for inputs that deviate and did not in the last green night, that of the day `since`.

    `name` returns the name of a class.

    Those on which the models agreed and that give no finite answer now, or none, are a regression,
    too.
    """
    inputs = [one for replay in replays for one in replay.inputs]
    new = [
        f"{one.id} ({with_names(one.difference, name)})" if one.difference else one.id
        for one in inputs
        if one.state == "new"
    ]
    checks = [
        Check(
            part="replay",
            name="max_new_triggers",
            words=words.new_text(new, len(inputs), since, at_most),
            crossed=len(new) > at_most,
        )
    ]
    for state in _BROKEN:
        broken = [one.id for one in inputs if one.state == state and not one.deviated]
        if broken:
            said = words.broken_text(state, broken, len(inputs))
            checks.append(Check(part="replay", name=state, words=said, crossed=True))
    return checks


def comparison_check(last_green: Path, tonight: Path, since: str) -> Check:
    """Compare the searches of the last green night (of the day `since`) and of this one.

    Raises what `rank_campaigns` does.
    """
    green = f"the last green night's ({since})"
    ranking = rank_campaigns([last_green, tonight], names=[green, _TONIGHT])
    (duel,) = ranking.duels
    said = ranking.verdict
    if duel.verdict != TIE:
        said = compared(ranking, duel, _TONIGHT)
    return Check(
        part="comparison",
        name=ranking.measure,
        words=capitalized(said),
        crossed=duel.verdict == green,
    )


def kinds_checks(last_green: Path, tonight: Path, since: str) -> list[Check]:
    """Compare how many objects on the seeds differ, kind by kind, with the last green night's.

    `since` is that night's day. A kind is worse where the lower 95 % bound tonight is above the
    upper bound then. Nothing for models that detect no objects. Raises StoreError.
    """
    checks = []
    with Store.open(last_green) as before, Store.open(tonight) as now:
        for rule in now.kind.checks():
            was, found = kind_rate(before, rule), kind_rate(now, rule)
            if was is None or found is None or not found.differing:
                continue
            said = words.kind_text(rule.whose, rule.verb, was, found, since)
            crossed = found.low > was.high
            name = rule.key.removeprefix("max_")
            checks.append(Check(part="comparison", name=name, words=said, crossed=crossed))
    return checks


def survey_check(
    before: SearchFigures | None, now: SearchFigures, since: str, *, comparable: bool = True
) -> list[Check]:
    """Check the rate of confident deviations against the last green night's, that of `since`.

    It is worse where the lower bound tonight is above the upper bound then. Nothing to check where
    a night had no survey; not `comparable` where the surveys' settings differ, which crosses
    nothing.
    """
    if before is None or before.confident_high is None or now.confident_low is None:
        return []
    both = (before.model_dump(), now.model_dump())
    said = words.survey_text(*both, since, comparable=comparable)
    crossed = comparable and now.confident_low > before.confident_high
    return [Check(part="comparison", name="confident deviations", words=said, crossed=crossed)]


def identity_of(store: Store, search: SearchConfig) -> Identity:
    """Return a campaign's identity on one device; `search`: its settings before resolution."""
    models = store.models
    devices = store.devices()
    return Identity(
        original=str(models.get("original", {}).get("sha256", "")),
        deployed=str(models.get("deployed", {}).get("sha256", "")),
        device=devices[-1].fingerprint if devices else {},
        host=store.environment,
        search=_settings(search),
        survey=_survey_settings(store),
    )


def _survey_settings(store: Store) -> dict[str, Any]:
    survey = store.campaign.get("survey") or {}
    names = ("queries", "sure", "candidates", "families")
    return {name: survey.get(name) for name in names} if survey.get("enabled") else {}


def resolved_as_in_baseline(baseline: Baseline, search: SearchConfig) -> SearchConfig:
    """Return a search with its open options as they were resolved in the last green night.

    What the boundary search leaves open is chosen by how fast the device is just then, so that it
    would else differ from night to night. Where the settings have changed it is chosen again.
    """
    if search.strategy != STRATEGY or baseline.run.identity.search != _settings(search):
        return search
    return resolved_as_in(baseline.campaign, search) or search


def _settings(search: SearchConfig) -> dict[str, Any]:
    return search.model_dump(mode="json", exclude={"seed"})


def changes(before: Identity, now: Identity) -> tuple[str, ...]:
    """Return a line for each change; none where nothing has changed."""
    files = [
        words.file_changed(which, old, new)
        for which, old, new in (
            ("deployed", before.deployed, now.deployed),
            ("original", before.original, now.original),
        )
        if old != new
    ]
    tables = (
        ("the device's", before.device, now.device),
        ("the host's", before.host, now.host),
        ("the search's", before.search, now.search),
        *([] if now.surveyed_like(before) else [("the survey's", before.survey, now.survey)]),
    )
    return (
        *files,
        *(
            words.value_changed(whose, name, old, new)
            for whose, then, later in tables
            for name, old, new in _differences(then, later)
        ),
    )


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], path: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f"{path}{name} ")
        elif old != new:
            yield f"{path}{name}", old, new
