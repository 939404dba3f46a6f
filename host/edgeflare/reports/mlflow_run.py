"""A campaign as a run on an MLflow tracking server."""

import json
import math
import re
import shlex
import ssl
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import unquote_plus
from urllib.request import urlopen

from edgeflare._internal import extras
from edgeflare._internal.records import JsonRecord
from edgeflare._internal.text import clean_text, counted
from edgeflare._version import __version__
from edgeflare.analysis.summary import Summary
from edgeflare.campaign.status import campaign_status
from edgeflare.errors import TrackingError, UsageError
from edgeflare.reports.export import export_campaign, translate_write_errors
from edgeflare.reports.html.page import MOST_EMBEDDED_MB, write_html_report
from edgeflare.reports.report import Report
from edgeflare.reports.sections.campaign import make_report
from edgeflare.store import Store, campaign_text, open_store
from edgeflare.words.devices import runtime_words

_T = TypeVar("_T")

EXPERIMENT = "edgeflare"
"""The experiment that runs belong to if none is named."""
CAMPAIGN_TAG = "edgeflare.campaign"
"""The tag with the campaign's id, by which its run is found again."""

_PICTURES = 10
_LONGEST_NAME = 250
_LONGEST_VALUE = 500
"""Older servers take no longer parameter."""
_AT_ONCE = 100
_SHORTEST_SECRET = 3
"""Shorter parts of a URI are in most texts by chance."""
_PROBE_S = 10
_TABLES = (
    *("by_status", "queries_found", "queries_searched", "seconds_found", "seconds_searched"),
    *("total_queries", "coverage", "control", "every_device", "replay", "survey"),
    *("detection", "values"),
)
"""The tables of the summary whose numbers are metrics, beside the numbers at its top."""
_NO_NAME = re.compile(r"[^\w. -]")


@dataclass(frozen=True)
class MlflowRun(JsonRecord):
    """The run that a campaign was logged as: where it is, and how much it has.

    `is_new` is False where an earlier export of the same campaign was brought up to date.
    """

    tracking_uri: str
    experiment: str
    run_id: str
    is_new: bool
    metrics: int
    params: int
    artifacts: int


def log_to_mlflow(
    campaign: Store | Path, *, uri: str | None = None, experiment: str | None = None
) -> MlflowRun:
    """Log a finished campaign, or replay, as one run on an MLflow tracking server.

    `uri` is that of the server, or of a database; by default what MLflow itself takes
    (``MLFLOW_TRACKING_URI``). The `experiment` is made where there is none, by default
    ``edgeflare``. The run has the `run_metrics`, the `run_params`, tags, and as
    artifacts the page ``report.html`` and the files of `export_campaign`, with pictures or sounds
    of the first findings. A campaign has one run in an experiment: logged again, that run is
    brought up to date, or completed where the server went away.

    Raises UsageError where MLflow is missing or the campaign isn't finished, TrackingError where
    the server doesn't answer or refuses, StoreError where the folder can't be used.
    """
    mlflow = extras.mlflow()
    with open_store(campaign) as store:
        _check_finished(store)
        server = _Server(mlflow, uri)
        report = make_report(store)
        with (
            translate_write_errors(
                Path(tempfile.gettempdir()),
                untouched="the campaign itself",
                again="export again",
                instead="let TMPDIR name another folder",
            ),
            tempfile.TemporaryDirectory(prefix="edgeflare-") as temporary,
        ):
            folder = Path(temporary) / "run"
            artifacts = _write_artifacts(store, folder)
            return server.log(report, experiment or EXPERIMENT, folder, artifacts)


def _check_finished(store: Store) -> None:
    status = campaign_status(store.folder)
    if status.state == "finished":
        return
    done = f"{status.done:,} of {counted(status.total, 'search', 'searches')} done"
    advice = shlex.join(["edgeflare", "resume", campaign_text(store.folder.resolve())])
    if status.state == "running":
        advice = "wait for its end"
    raise UsageError(
        f"{store.folder} isn't finished ({done}), and a run has final numbers only: {advice}, then "
        "export again"
    )


def _write_artifacts(store: Store, folder: Path) -> int:
    """Write what is uploaded into a new folder; return the number of files."""
    exported = export_campaign(store, folder, most_pictures=_PICTURES)
    page = write_html_report(store, folder / "report.html", embed_mb=MOST_EMBEDDED_MB)
    return exported.files + 1 + page.beside


# What is logged


def run_metrics(summary: Summary) -> dict[str, float]:
    """Return the numbers of a summary, under its names in JSON with dots between them.

    Those at its top (``success_rate``), of its tables (``queries_found.median``), of each device
    (``telemetry.pi4.temperature_max_c``), and the number of ``limits_crossed``. What is unknown is
    left out; what MLflow takes in no name is a hyphen.
    """
    known = summary.to_json()
    tables: dict[str, Any] = {name: known[name] for name in _TABLES}
    for name, key in (("by_device", "name"), ("telemetry", "device")):
        tables[name] = {row[key]: row for row in known[name]}
    tables["limits_crossed"] = len(summary.limits_crossed)
    tops = {name: value for name, value in known.items() if not isinstance(value, Mapping)}
    return {
        name[:_LONGEST_NAME]: float(value)
        for name, value in _flat({**tops, **tables})
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def run_params(store: Store) -> dict[str, str]:
    """Return what was searched: both models' files with their SHA-256, the devices, the seeds'
    file or folder, and the tables `search`, `limits` and `fleet` of the configuration."""
    config = store.campaign
    models = {
        which: {
            "name": model.get("name"),
            "sha256": model.get("sha256"),
            "runtime": runtime_words(model.get("runtime") or {}),
            **({"repair": model["repair"].get("sha256")} if model.get("repair") else {}),
        }
        for which, model in sorted(store.models.items(), reverse=True)
    }
    seeds = (config.get("seeds") or {}).get("path")
    values = {
        **models,
        "devices": ", ".join(sorted({device.name for device in store.devices()})),
        "seeds": Path(str(seeds)).name if seeds else None,
        **{name: config.get(name) or {} for name in ("search", "limits", "fleet")},
    }
    return {
        name[:_LONGEST_NAME]: clean_text(_param_text(value), _LONGEST_VALUE)
        for name, value in _flat(values)
        if value not in (None, "", [], {})
    }


def run_tags(report: Report) -> dict[str, str]:
    """Return the campaign's id, its verdict, whether its limits are kept, and the version."""
    kept = "undecided" if report.undecided else "kept"
    limits = "crossed" if report.crossed else kept if report.has_limits else "none"
    return {
        CAMPAIGN_TAG: report.store.id,
        "edgeflare.limits": limits,
        "edgeflare.verdict": clean_text(report.text, _LONGEST_VALUE),
        "edgeflare.version": __version__,
        "mlflow.note.content": clean_text(" ".join([report.text, *report.guidance])),
        "mlflow.source.name": "edgeflare",
    }


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables with their names, joined by dots."""
    for key, value in values.items():
        name = before + _NO_NAME.sub("-", str(key))
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _param_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# The server


class _Server:
    """A tracking server, or another store of MLflow. Raises TrackingError where it can't be used."""

    def __init__(self, mlflow: Any, uri: str | None) -> None:
        self._mlflow = mlflow
        uri = uri or mlflow.get_tracking_uri()
        self._full_uri, self._uri = uri, _without_secrets(uri)
        _check_answers(self._uri)
        self._errors = (mlflow.exceptions.MlflowException, ImportError, OSError)
        try:
            self._client = mlflow.MlflowClient(tracking_uri=uri)
        except self._errors as error:
            raise self._refusal(error) from None  # a traceback would show MLflow's text

    def log(
        self, report: Report, experiment: str, artifacts: Path, artifact_count: int
    ) -> MlflowRun:
        """Make the campaign's run, or bring it up to date."""
        metrics, params = run_metrics(report.summary), run_params(report.store)
        try:
            run, is_new = self._run(report.store, self._experiment_id(experiment))
            self._check_params(run, params)
            self._log_values(run, metrics, params, run_tags(report))
            self._client.log_artifacts(run.info.run_id, str(artifacts))
            self._client.set_terminated(run.info.run_id, "FINISHED", _ended_at(report.store))
        except self._errors as error:
            raise self._refusal(error) from None  # a traceback would show MLflow's text
        return MlflowRun(
            tracking_uri=self._uri,
            experiment=experiment,
            run_id=run.info.run_id,
            is_new=is_new,
            metrics=len(metrics),
            params=len(params),
            artifacts=artifact_count,
        )

    def _experiment_id(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            created: str = self._client.create_experiment(name)
            return created
        if found.lifecycle_stage != "active":
            raise UsageError(
                f"the experiment {name!r} is deleted on {self._uri}; restore it there, or name "
                "another one with --mlflow-experiment"
            )
        known: str = found.experiment_id
        return known

    def _run(self, store: Store, experiment_id: str) -> tuple[Any, bool]:
        """Return the campaign's run, and whether it was made just now."""
        found = self._client.search_runs(
            [experiment_id], f"tags.`{CAMPAIGN_TAG}` = '{store.id}'", max_results=1
        )
        if found:
            return found[0], False
        run = self._client.create_run(
            experiment_id,
            start_time=_milliseconds(store.created_at.timestamp()),
            run_name=clean_text(store.folder.resolve().name, _LONGEST_NAME),
            tags={CAMPAIGN_TAG: store.id},
        )
        return run, True

    def _check_params(self, run: Any, params: Mapping[str, str]) -> None:
        """Raise UsageError for another value than was logged: MLflow never changes one."""
        logged = run.data.params
        for name, value in params.items():
            if logged.get(name, value) != value:
                raise UsageError(
                    f"the run {run.info.run_id} on {self._uri} was logged with another {name} "
                    f"({logged[name]}, now {value}); delete that run, and export again"
                )

    def _log_values(
        self,
        run: Any,
        metrics: Mapping[str, float],
        params: Mapping[str, str],
        tags: Mapping[str, str],
    ) -> None:
        """Log what the run doesn't have, or has otherwise."""
        entities, now = self._mlflow.entities, _milliseconds(time.time())
        had = run.data.metrics
        new_metrics = [
            entities.Metric(name, value, now, 0)
            for name, value in metrics.items()
            if had.get(name) != value
        ]
        new_params = [
            entities.Param(name, value)
            for name, value in params.items()
            if name not in run.data.params
        ]
        new_tags = [entities.RunTag(name, value) for name, value in tags.items()]
        parts = map(_in_parts, (new_metrics, new_params, new_tags))
        for few_metrics, few_params, few_tags in zip_longest(*parts, fillvalue=[]):
            self._client.log_batch(run.info.run_id, few_metrics, few_params, few_tags)

    def _refusal(self, error: Exception) -> TrackingError:
        why = clean_text(_redacted(str(error), self._full_uri), _LONGEST_VALUE)
        return TrackingError(
            f"the run can't be logged on {self._uri}: {why}; "
            "repair that and export again: a run that was begun is completed"
        )


def _in_parts(values: Sequence[_T]) -> list[Sequence[_T]]:
    return [values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE)]


def _ended_at(store: Store) -> int:
    """Return when the last search ended, in milliseconds since 1970."""
    ends = (outcome.finished_at for outcome in store.outcomes())
    return _milliseconds(max(ends, default=store.created_at).timestamp())


def _milliseconds(seconds: float) -> int:
    return round(1000 * seconds)


def _without_secrets(uri: str) -> str:
    """Return a URI without user, password and query; of one in which they can't be told from the
    rest, the scheme only."""
    scheme, mark, rest = uri.partition("://")
    if not mark:
        return uri
    parts = re.fullmatch(r"(?:[^?#]*@)?([^@?#]*)(?:[?#][^@]*)?", rest, re.DOTALL)
    return f"{scheme}://{parts[1] if parts else '***'}"


def _redacted(text: str, uri: str) -> str:
    """Return a text without what `_without_secrets` removes from the URI, wherever it stands."""
    rest = uri.partition("://")[2]
    if not rest:
        return text
    text = text.replace(uri.rstrip("/"), _without_secrets(uri).rstrip("/"))
    users, at, _ = rest.rpartition("@")
    password, query = users.partition(":")[2], "".join(re.split("[?#]", rest, maxsplit=1)[1:])
    values = re.findall("=([^&;#]*)", query)
    secrets = {users + at, password, query, *re.split("[:/?#@]", password), *values}
    secrets |= set(map(unquote_plus, secrets))
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text


def _check_answers(uri: str) -> None:
    """Raise TrackingError where nothing answers; MLflow itself would try for minutes.

    Whatever comes back will do: MLflow knows passwords and certificates that this doesn't.
    """
    if not uri.startswith(("http://", "https://")):
        return
    try:
        with urlopen(f"{uri.rstrip('/')}/health", timeout=_PROBE_S):  # noqa: S310 - it is HTTP
            return
    except HTTPError:
        return
    except (OSError, HTTPException, ValueError) as error:
        why = error.reason if isinstance(error, URLError) else error
        if isinstance(why, ssl.SSLError):
            return
        raise TrackingError(
            f"the tracking server {uri} doesn't answer ({clean_text(str(why))}); start it, or name "
            "another one with --mlflow-uri or MLFLOW_TRACKING_URI"
        ) from error
