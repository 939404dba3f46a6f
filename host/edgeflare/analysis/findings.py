"""A campaign's findings one by one, each with its seed, cause and command to reproduce it."""

import heapq
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from edgeflare.analysis.agreement import NOT_ATTRIBUTED, Causes, TriggerCause
from edgeflare.answers import common_kind, kind_of_answer
from edgeflare.answers.metrics import difference_text, text_of
from edgeflare.answers.parts import jsonable as jsonable  # noqa: PLC0414 - public here
from edgeflare.campaign.status import replica_names
from edgeflare.explanation import FindingCause, FindingGroup, Remark, stored_explanation
from edgeflare.store import OutcomeRecord, SeedRecord, Store, campaign_text
from edgeflare.store.records import trigger_id
from edgeflare.strategies.operators import describe_mutations
from edgeflare.types import TRIGGERS, Output, Status

_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)")
_FINDINGS = TRIGGERS | {Status.UNSTABLE, Status.NONFINITE}


def outcome_part(models: Mapping[str, Any], outcome: OutcomeRecord) -> dict[str, Any]:
    """Return a finding's outcome as a JSON object.

    Scores are as `score_list` has them: lists of float [classes], of a transcript [pieces][2]: the
    probability of each of its pieces and that of the best other one; the texts and pieces are None
    of scores. `differences` are those of detections, those below the margin floor, too, and
    `difference` has them, or the distance of values, in words; None of others. `trigger_sample` is
    a digest in the campaign's store, None where the seed itself is the finding; `device` and
    `environment` are digests that `campaign.json` explains. `round_trips` are the search's requests
    to the device, `device_seconds` its own time for them and for confirmations; `front` lists the
    deviations on the way that no earlier one beats in both margin and L2. `words` has each of the
    `mutations` as text. `replica` is the device that searched for itself, "" in a pool that shares
    the seeds.
    """
    return {
        "seed_id": outcome.seed_id,
        "replica": outcome.replica,
        "status": outcome.status.value,
        "chain_seed": outcome.chain_seed,
        "trigger_sample": outcome.trigger,
        "original_label": outcome.original_label,
        "deployed_label": outcome.deployed_label,
        "original_text": text_of(outcome.original),
        "deployed_text": text_of(outcome.deployed),
        "original_scores": score_list(outcome.original),
        "deployed_scores": score_list(outcome.deployed),
        "differences": difference_list(outcome.original, outcome.deployed),
        "difference": difference_text(outcome.original, outcome.deployed),
        "original_pieces": _pieces(outcome.original),
        "deployed_pieces": _pieces(outcome.deployed),
        "original_margin": outcome.original_margin,
        "deployed_margin": outcome.deployed_margin,
        "l2": outcome.l2,
        "linf": outcome.linf,
        "snr_db": outcome.snr_db,
        "front": [point._asdict() for point in outcome.front],
        "queries": {
            "seed": outcome.seed_queries,
            "search": outcome.search_queries,
            "confirmation": outcome.confirmation_queries,
            "host_only": outcome.host_only_queries,
        },
        "round_trips": outcome.round_trips,
        "seconds": outcome.seconds,
        "device_seconds": outcome.device_seconds,
        "confirmed": outcome.confirmed,
        "mutations": list(outcome.mutations),
        "words": describe_mutations(outcome.mutations),
        "detail": outcome.detail,
        "finished_at": outcome.finished_at.isoformat(),
        "original_model": models.get("original", {}).get("sha256"),
        "deployed_model": models.get("deployed", {}).get("sha256"),
        "device_name": outcome.device_name,
        "device": outcome.device,
        "environment": outcome.environment,
    }


def seed_part(seed: SeedRecord, outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return the seed of a finding as a JSON object; `outcome` is the `outcome_part`.

    Where the seed itself is the finding, `seed_sample` and `trigger_sample` are the same.
    """
    return {
        "label": seed.label,
        "seed_sample": seed.sample,
        "trigger_sample": outcome["trigger_sample"] or seed.sample,
    }


def csv_cell(value: Any) -> Any:
    """Return a value as a CSV cell, no formula for a spreadsheet; numbers, also as texts, stay.

    A text that begins as a formula does (``= + - @``, tab, a line end) gets an apostrophe before
    it. Carriage returns become line feeds, since the writer leaves them without quotes.
    """
    if not isinstance(value, str):
        return value
    mark = "'" if _FORMULA.match(value) and not _NUMBER.fullmatch(value) else ""
    return mark + value.replace("\r\n", "\n").replace("\r", "\n")


def score_list(output: Output | None) -> Any:
    """Return the scores of an answer as `jsonable` data, None without an answer.

    Of detections objects with label, score and box, what is detected alone; of values their shape
    and range.
    """
    return None if output is None else kind_of_answer(output).to_json(output)


def difference_list(
    original: Output | None, deployed: Output | None
) -> list[dict[str, Any]] | None:
    """Return the differences of two detectors' answers as JSON objects; None of other answers.

    There are none where an answer has NaN or infinity. `scores` are both models' of the object,
    `margins` both models'; see `edgeflare.detections.Difference`.
    """
    if original is None or deployed is None:
        return None
    return common_kind(original, deployed).differences_json(original, deployed)


def _pieces(output: Output | None) -> list[str] | None:
    return None if output is None else kind_of_answer(output).pieces(output)


def has_input(outcome: OutcomeRecord) -> bool:
    """Whether there is an input to show: a finding's, or one that a device can't answer."""
    failed = outcome.status is Status.FAILED and outcome.trigger is not None
    return failed or outcome.status in _FINDINGS


@dataclass(frozen=True)
class Finding:
    """An input to show, with the seed that it was found from.

    `seed` has as outputs the answers of the device that found it. `cause` is what a trigger comes
    of: as the campaign's explanation says, else see `Causes`; "not attributed" for what is no
    trigger. `layer` is the one that makes half of the change, and `doubt` why the cause may be
    another one, as the explanation says; `group` has the findings like it, None where nothing is
    explained.
    `command` is a line for a shell that sends the input again.
    """

    seed: SeedRecord
    outcome: OutcomeRecord
    cause: TriggerCause | FindingCause
    command: str
    layer: str = ""
    doubt: tuple[Remark, ...] | str = ()
    group: FindingGroup | None = None


def count_findings(store: Store) -> int:
    """Return the number of `findings`."""
    rows = store.columns.outcomes()
    failed = rows.status.among(Status.FAILED) & rows.has_trigger
    return int((failed | rows.status.among(*_FINDINGS)).sum())


def findings(store: Store) -> Iterator[Finding]:
    """Yield the `results` that have an input to show. Raises StoreError."""
    return (one for one in results(store) if has_input(one.outcome))


def results(store: Store) -> Iterator[Finding]:
    """Yield every outcome, by seed and replica, reading page by page. Raises StoreError."""
    replicas = replica_names(store)
    causes, commands = Causes(store, replicas), Commands(store)
    explained = stored_explanation(store)
    charged = {} if explained is None else {one.id: one for one in explained.findings}
    groups = (
        {}
        if explained is None
        else {member: one for one in explained.groups for member in one.members}
    )
    ranked = (
        (
            (seed.position, rank, seed, outcome)
            for seed, outcome in outcomes_of_replica(store, replica)
        )
        for rank, replica in enumerate(replicas)
    )
    for _, rank, seed, outcome in heapq.merge(*ranked, key=itemgetter(0, 1)):
        cause: TriggerCause | FindingCause = NOT_ATTRIBUTED
        name = trigger_id(seed.id, replicas[rank])
        if outcome.status in TRIGGERS:
            known = charged.get(name)
            cause = known.cause if known else causes.of(seed.id, outcome.trigger)
        layer = "" if explained is None else explained.main_layer(name)
        doubt = charged[name].doubt if name in charged else ()
        command = commands.replay(seed.id, outcome.replica)
        yield Finding(seed, outcome, cause, command, layer, doubt, groups.get(name))


class Commands:
    """The command lines that send a campaign's inputs again, from any folder."""

    def __init__(self, store: Store) -> None:
        self._folder = campaign_text(store.folder.resolve())
        names, devices = replica_names(store), store.campaign.get("devices") or ()
        same = len(names) == len(devices)
        self._devices = dict(zip(names, devices, strict=True)) if same else {}

    def replay(self, seed_id: str, replica: str) -> str:
        """Return the command that sends a seed's finding to its replica's device, or a pool."""
        words = ["edgeflare", "replay", self._folder, "--trigger", seed_id]
        if replica:
            words += ["--device", self._devices.get(replica, replica)]
        return shlex.join(words)


def outcomes_of_replica(store: Store, replica: str) -> Iterator[tuple[SeedRecord, OutcomeRecord]]:
    """Yield every outcome of a replica with its seed, in the order of the seeds."""
    seeds = store.seeds(replica)
    for outcome in store.outcomes_of(replica):
        seed = next(seed for seed in seeds if seed.id == outcome.seed_id)
        yield seed, outcome
