"""What a campaign found, so that two runs of it can be compared; what earlier versions wrote."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from edgeflare.answers.metrics import numbers, text_of
from edgeflare.errors import StoreError
from edgeflare.store import Store
from edgeflare.types import Output

DATA = Path(__file__).resolve().parents[1] / "data" / "campaigns"
VERSIONS = tuple(sorted(path.parent.name for path in DATA.glob("*/expected.json")))
Found = dict[tuple[str, str], tuple[Any, ...]]


def found_in(folder: Path) -> Found:
    """Everything that must not depend on devices, order or interruptions, by (seed, replica)."""
    with Store.open(folder) as store:
        rows = [
            (
                (one.seed_id, one.replica),
                (
                    one.status,
                    one.trigger,
                    one.seed_queries,
                    one.search_queries,
                    one.confirmation_queries,
                    one.host_only_queries,
                    one.round_trips,
                    one.front,
                    one.confirmed,
                    _bits(one.original),
                    _bits(one.deployed),
                    tuple(map(str, one.mutations)),
                ),
            )
            for one in store.outcomes()
        ]
    found = dict(rows)
    assert len(found) == len(rows), "an outcome is there twice"
    return found


def all_of(folder: Path) -> dict[str, Any]:
    """Everything a campaign learned that must not depend on interruptions, for comparison."""
    with Store.open(folder) as store:
        replicas = store.state.replicas
        answers = {
            (replica, seed.id): (
                seed.position,
                seed.sample,
                seed.label,
                seed.outputs
                and (
                    [_bits(one) for one in seed.outputs[:2]],
                    seed.outputs.decision,
                ),
            )
            for replica in replicas
            for seed in store.seeds(replica)
        }
        replays = sorted(
            (one.seed_id, one.replica, one.on_device, one.trigger, one.decision.value)
            for one in store.replays()
        )
        surveyed = [
            (
                *(one.replica, one.seed_id, one.phase, one.number),
                *(one.family, one.severity, one.params, one.sample),
                *(_bits(one.original), _bits(one.deployed), one.decision.value),
                *(one.confident_deviation, one.confirmed),
            )
            for one in store.survey()
        ]
        spent = sorted(
            (one.replica, one.seed_id, one.phase, one.round, one.survey_queries)
            for one in store.surveyed_seeds()
        )
        return {
            "found": found_in(folder),
            "surveyed": surveyed,
            "survey_queries": spent,
            "replicas": replicas,
            "answers": answers,
            "replays": replays,
            "skipped": store.skipped(),
            "models": store.models,
            "finished": store.state.finished,
            "checked": store.state.checked,
            "notices": sorted(set(store.notices())),
            "notices_twice": len(store.notices()) - len(set(store.notices())),
        }


def finished(folder: Path) -> int:
    """How many searches are finished; 0 where the campaign's folder isn't made yet."""
    try:
        with Store.open(folder) as store:
            return store.tally().done
    except StoreError:
        return 0


def _bits(output: Output | None) -> tuple[str | None, bytes] | None:
    """Return a model's answer to the last bit, as something that can be compared."""
    return None if output is None else (text_of(output), numbers(output).tobytes())


class Earlier(NamedTuple):
    """A copy of what one version wrote: a campaign, and a corpus made of it and of a replay."""

    campaign: Path
    corpus: Path
    triggers: dict[str, str]
    show: dict[str, Any]
    corpus_show: dict[str, Any]


def copy_of(version: str, to: Path) -> Earlier:
    """Copy what a version wrote into the folder `to`."""
    for kind in ("campaign", "corpus"):
        shutil.copytree(DATA / version / kind, to / kind)
    said = json.loads((DATA / version / "expected.json").read_text())
    return Earlier(to / "campaign", to / "corpus", said["triggers"], said["show"], said["corpus"])
