"""Whether a model got worse since the last green night."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from edgeflare._internal.records import JsonRecord, in_json
from edgeflare._internal.text import capitalized
from edgeflare.analysis.base import Analysis, RunContext
from edgeflare.analysis.limits import check_limits
from edgeflare.analysis.outcome_stats import KindRate, kind_rate
from edgeflare.analysis.ranking.paired_tests import TIE, Duel
from edgeflare.analysis.ranking.ranking import rank_campaigns
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.analysis.survey import survey_figures
from edgeflare.answers import kind_named
from edgeflare.answers.detections.words import with_names
from edgeflare.answers.parts import Name
from edgeflare.campaign.comparison import Measure
from edgeflare.campaign.pair.health import unusable_answers
from edgeflare.campaign.resolution import STRATEGY, resolved_as_in
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.campaign.settings.flags import Flag
from edgeflare.document import Item, Listing, Section
from edgeflare.nightly.history import Baseline
from edgeflare.nightly.night import Check, Identity
from edgeflare.store import Store, folder_at
from edgeflare.words import nightly as words
from edgeflare.words.ranking import measure_text, pair_verdict

PRESENT = "the present model"
"""The candidate that is compared with an earlier one."""
_BROKEN = ("nonfinite", "failed")
_DIGITS = 8


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


class BaseSettings(BaseModel):
    """The campaign that a later one is compared with; `called` is what reports call it."""

    base: Annotated[Path, Flag("--base", metavar="CAMPAIGN", parser=folder_at)] = Field(
        description="The earlier campaign, such as the last green night's; needed."
    )
    called: str = ""


@dataclass(frozen=True)
class RateChange:
    """A rate then and now: by the limit's rule of this `key`, "" for the survey's deviations.

    Rates of surveys with different settings are not `comparable`.
    """

    key: str
    before: KindRate
    now: KindRate
    comparable: bool = True

    @property
    def is_worse(self) -> bool:
        """Whether the lower 95 % bound now is above the upper bound then."""
        return self.comparable and self.now.low > self.before.high


@dataclass(frozen=True)
class BaseComparison(JsonRecord):
    """A campaign compared with an earlier one, the `base`, seed by seed, by the `measure`.

    The second of the `duel` is `PRESENT`. `kind` is the name of that of the answers; `rates` are
    those of objects on the seeds that differ, and that of the survey.
    """

    base: str
    kind: str
    measure: Measure
    duel: Duel
    rates: tuple[RateChange, ...]

    @in_json
    def checks(self) -> list[Check]:
        """What makes a night red, and what doesn't."""
        kind = kind_named(self.kind)
        rules = {rule.key: rule for rule in kind.checks()}
        duel = self.duel
        said = pair_verdict(duel, measure_text(self.measure, kind), PRESENT)
        checks = [_check(self.measure, capitalized(said), duel.verdict not in (TIE, PRESENT))]
        for rate in self.rates:
            said = words.rate_text(rate.before, rate.now, self.base, rules.get(rate.key))
            said = said if rate.comparable else words.OTHER_SURVEY.format(said)
            name = rate.key.removeprefix("max_") or "confident deviations"
            checks.append(_check(name, said, rate.is_worse))
        return checks


def _check(name: str, said: str, crossed: bool) -> Check:
    return Check(part="comparison", name=name, words=said, crossed=crossed)


class _Regression(Analysis[BaseSettings, BaseComparison]):
    name = "regression"
    about = "Tell whether the deployed model is worse than that of an earlier campaign."
    settings, result = BaseSettings, BaseComparison

    def run(self, campaign: Store, settings: BaseSettings, context: RunContext) -> BaseComparison:
        del context
        called = settings.called or f"the campaign {settings.base}"
        with Store.open(settings.base) as before:
            ranking = rank_campaigns([before, campaign], names=[f"the model of {called}", PRESENT])
            rates = (*_kind_rates(before, campaign), *_survey_rates(before, campaign))
        (duel,) = ranking.duels
        return BaseComparison(called, ranking.kind.name, ranking.measure, duel, rates)

    def exit_code(self, result: BaseComparison) -> int:
        return int(any(check.crossed for check in result.checks))

    def sections(self, result: BaseComparison) -> Iterator[Section]:  # type: ignore[override]
        items = (Item(one.words, "bad" if one.crossed else "plain") for one in result.checks)
        yield Section("regression", f"Compared with {result.base}", (Listing((*items,)),), order=40)


REGRESSION = _Regression()


def _kind_rates(before: Store, now: Store) -> Iterator[RateChange]:
    """Yield how many objects on the seeds differ, by each of the kind's rules, where any does."""
    for rule in now.kind.checks():
        earlier, present = kind_rate(before, rule), kind_rate(now, rule)
        if earlier is not None and present is not None and present.differing:
            yield RateChange(rule.key, earlier, present)


def _survey_rates(before: Store, now: Store) -> Iterator[RateChange]:
    """Yield how many inputs of the surveys deviate; nothing where one campaign has none."""
    surveys = [survey_figures(store) for store in (before, now)]
    rates = [survey.overall for survey in surveys if survey is not None]
    earlier, present = (
        None if one is None else KindRate(one.deviations, one.inputs, one.low, one.high, ())
        for one in (rates if len(rates) == 2 else (None, None))
    )
    if earlier is not None and present is not None:
        settings = [_survey_settings(store) for store in (before, now)]
        comparable = not all(settings) or settings[0] == settings[1]
        yield RateChange("", earlier, present, comparable=comparable)


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
        words.change_text(f"the {which} model's file: SHA-256", old[:_DIGITS], new[:_DIGITS])
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
            words.change_text(f"{whose} {name}:", old, new)
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
