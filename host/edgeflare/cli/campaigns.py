"""The commands for one campaign, and its replay: ``demo``, ``init``, ``run``, ``replay`` and others."""

import contextlib
import os
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import typer

from edgeflare._internal.text import counted, size_text
from edgeflare.cli.options import CampaignFolder, Force, Json
from edgeflare.cli.terminal import echo, echo_err, findings_text
from edgeflare.errors import DeviceError, PreflightError

if TYPE_CHECKING:
    from edgeflare import CampaignConfig
    from edgeflare._internal.flags import Typed
    from edgeflare.cli.settings import (
        CheckSettings,
        DemoSettings,
        ExportSettings,
        HostsSettings,
        InitSettings,
        InputsSettings,
        ReportSettings,
        ResumeSettings,
        RunSettings,
        SelftestSettings,
        ShowSettings,
        StatusSettings,
        SurveySettings,
    )
    from edgeflare.reports import MlflowRun, ReportFormat


def _run_and_show(campaign: Callable[..., Path], json: bool) -> None:
    """Run a campaign, a function of ``ask`` and ``progress``, and print its summary."""
    from edgeflare import summarize
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_summary
    from edgeflare.cli.terminal import ask, end_by
    from edgeflare.store import is_address

    wrong: PreflightError | None = None
    with progress_display() as progress:
        try:
            folder = campaign(ask=ask, progress=progress)
        except PreflightError as error:
            if error.folder is None:
                raise
            folder, wrong = error.folder, error
    summary = summarize(folder)
    print_summary(summary, json)
    if not json:
        echo_err(f"\nEverything is in {summary.folder}")
        echo_err(f"A page of it: {shlex.join(['edgeflare', 'report', summary.folder])}")
        what = "sounds" if summary.sample_rate else "pictures"
        to = Path(folder.name) if is_address(summary.folder) else folder
        command = ["edgeflare", "export", summary.folder, f"{to}-{what}"]
        echo_err(f"{what.capitalize()}: {shlex.join(command)}")
    if wrong is not None:
        raise wrong
    end_by(summary.limits_crossed, summary.limits_undecided)


def demo(settings: "DemoSettings", json: Json = False) -> None:
    """Search on real MNIST digits with a real int8 model; no device needed."""
    from edgeflare import run_campaign
    from edgeflare.campaign import demo_config

    config = demo_config(
        settings.typed.values,
        settings.typed.flags,
        task=settings.task,
        seeds=settings.seeds,
        campaign_seed=settings.seed,
    )
    _run_and_show(partial(run_campaign, config), json)


def init(settings: "InitSettings") -> None:
    """Write a commented campaign.toml."""
    from edgeflare.campaign import write_starter

    path = settings.path
    write_starter(path)
    echo_err(f"wrote {path}; edit it, then: edgeflare run {path}")


def resume(
    settings: "ResumeSettings",
    campaign: CampaignFolder,
    force: Force = False,
    json: Json = False,
) -> None:
    """Go on with a campaign that was interrupted, paused or killed; finished seeds are kept."""
    from edgeflare import resume_campaign
    from edgeflare.campaign import FleetConfig

    stated = settings.typed
    run = partial(
        resume_campaign,
        campaign,
        force=force,
        changes=stated.values,
        typed=stated.flags,
        check_samples=True,
    )
    fleet = FleetConfig.model_construct(**stated.values.get("fleet", {}))
    with settings.cluster(fleet) as cluster:
        _run_and_show(partial(run, cluster=cluster), json)


def status(settings: "StatusSettings", campaign: CampaignFolder, json: Json = False) -> None:
    """Show how far a campaign is and what its devices do, while it runs or after."""
    from edgeflare import campaign_status
    from edgeflare.cli.display.status import print_status, watch_status

    if settings.watch:
        watch_status(campaign, json)
    else:
        print_status(campaign_status(campaign), json)


def show(settings: "ShowSettings", campaign: CampaignFolder, json: Json = False) -> None:
    """Show what a campaign found: success rate, queries, time, label pairs, devices."""
    from edgeflare import summarize
    from edgeflare.cli.display.tables import print_summary

    print_summary(summarize(campaign), json, wide=settings.wide)


def export(settings: "ExportSettings", campaign: CampaignFolder, json: Json = False) -> None:
    """Write pictures or sounds of seeds, triggers and differences, and a JSON line for each."""
    from edgeflare import UsageError, export_campaign
    from edgeflare.cli.display.tables import print_export

    folder, uri, experiment = settings.folder, settings.mlflow_uri, settings.mlflow_experiment
    if not settings.mlflow:
        if uri is not None or experiment is not None:
            raise UsageError("--mlflow-uri and --mlflow-experiment are for --mlflow; add it")
        if folder is None:
            raise UsageError("name the folder to write, or log the campaign with --mlflow")
    files = None if folder is None else export_campaign(campaign, folder)
    run = _log_to_mlflow(campaign, uri, experiment) if settings.mlflow else None
    print_export(files, run, json)


def _log_to_mlflow(campaign: Path, uri: str | None, experiment: str | None) -> "MlflowRun":
    from edgeflare.reports import log_to_mlflow

    experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME")
    with contextlib.redirect_stdout(sys.stderr):  # MLflow prints addresses of pages
        return log_to_mlflow(campaign, uri=uri, experiment=experiment)


def run(
    settings: "RunSettings",
    json: Json = False,
) -> None:
    """Find, for each seed input, an input on which the device's model decides differently."""
    _run_new(config_of(settings.campaign, settings.typed), settings, json)


def survey(
    settings: "SurveySettings",
    json: Json = False,
) -> None:
    """Ask about inputs far from the seeds at which the original is sure; nothing is searched."""
    from edgeflare.campaign import survey_alone

    _run_new(survey_alone(config_of(settings.campaign, settings.typed)), settings, json)


def check(settings: "CheckSettings", json: Json = False) -> None:
    """Check a deployed model against its original: the verdict, the cause with its proof, what next."""
    from edgeflare import run_campaign
    from edgeflare.campaign import survey_alone
    from edgeflare.cli.analyse import run_and_print
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.terminal import ask

    config = survey_alone(_config_of_pair(settings, "check"))
    config = config.model_copy(update={"allow_disagreement": True})
    try:
        with progress_display() as progress:
            folder = run_campaign(config, ask=ask, progress=progress)
    except DeviceError:
        if json:  # programs get the same names: there is no verdict
            from edgeflare.analysis import analysis
            from edgeflare.cli.display.tables import print_json

            plugin: Any = analysis("check")
            print_json(plugin.to_json(plugin.not_asked))
        raise
    if not json:
        echo_err(f"in {folder}")
    run_and_print("check", folder, {}, json=json)


def _config_of_pair(settings: "CheckSettings | InputsSettings", command: str) -> "CampaignConfig":
    """Return the configuration of a pair whose files and seeds are arguments."""
    from edgeflare import config_from

    stated = settings.typed
    for table in ("original", "deployed", "seeds"):
        stated.values.setdefault(table, {})["path"] = getattr(settings, table)
    return config_from(stated.values, command, stated.flags)


def _run_new(config: "CampaignConfig", hosts: "HostsSettings", json: bool) -> None:
    from edgeflare import run_campaign
    from edgeflare.analysis import check_healthy

    check_healthy(config.survey.references)
    with hosts.cluster(config.fleet) as cluster:
        _run_and_show(partial(run_campaign, config, cluster=cluster), json)


def config_of(campaign: Path | None, stated: "Typed") -> "CampaignConfig":
    """Return the configuration: the campaign file's with the flags on top, or the flags' alone.

    Of flags alone `--variant` says as well that the strategy is dflare, unless another one is
    stated. Raises UsageError.
    """
    from edgeflare import UsageError, config_from, load_config

    others = [
        f"--{name}"
        for name in ("family", "survey-queries", "sure", "pursuit-queries")
        if f"--{name}" in stated.flags.values()
    ]
    if others and stated.values["survey"].get("enabled") is False:
        raise UsageError(
            f"{' and '.join(others)} without a survey: leave out --no-survey, or the other"
        )
    if campaign is not None:
        return load_config(campaign, stated.values, stated.flags)
    missing = [f"--{name}" for name in ("original", "deployed", "seeds") if not stated.has(name)]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} missing: state all three, or give a campaign.toml (`edgeflare "
            "init` writes one)"
        )
    if stated.flags.get("search.options.variant") == "--variant":
        stated.values["search"].setdefault("strategy", "dflare")
    return config_from(stated.values, "run", stated.flags)


def selftest(settings: "SelftestSettings", json: Json = False) -> None:
    """Search where something, and where nothing is to be found (a model against itself)."""
    from edgeflare.campaign import run_selftest
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.reports import Text, table_of

    with progress_display() as progress:
        result = run_selftest(seeds=settings.seeds, progress=progress)
    rows = [
        (
            pair.name,
            str(pair.searches),
            str(pair.triggers),
            str(pair.false_alarms) if pair.of_one_model else "-",
        )
        for pair in result.pairs
    ]
    text = (
        f"{'failed' if result.problems else 'passed'} in {result.seconds:.1f} s: "
        f"{result.strategy}, margin floor {result.margin_floor:g}"
    )
    header = ("pair", "searches", "triggers", "false alarms")
    verdict = Text(text, "bad" if result.problems else "good")
    print_result(json, result.to_json, lambda: [table_of(header, rows), verdict])
    for problem in result.problems:
        echo_err(f"edgeflare: {problem}")
    if result.problems:
        raise typer.Exit(1)


_HTML = "html"


def report(settings: "ReportSettings") -> None:
    """Write a campaign's results for people and CI: a page, test cases, JSON, Markdown or CSV."""
    from edgeflare import UsageError
    from edgeflare.analysis import load_class_names
    from edgeflare.cli.settings import EMBED_MB
    from edgeflare.reports import ReportFormat

    campaign, form, out = settings.campaign, settings.form, settings.out
    embed_mb, texts = settings.embed_mb, get_args(ReportFormat)
    if form not in (_HTML, *texts):
        raise UsageError(f"there is no format {form!r}; take {_HTML}, {', '.join(texts)}")
    if embed_mb is not None and form != _HTML:
        raise UsageError(
            f"--embed-mb is for pages: {form} has no pictures and no sounds; leave it out"
        )
    file = settings.class_names
    names = None if file is None else load_class_names(file, campaign)
    if form == _HTML:
        _write_page(campaign, out, names, EMBED_MB if embed_mb is None else embed_mb)
    else:
        _write_text(campaign, form, out, names)  # type: ignore[arg-type] # it is checked there


def _write_page(
    campaign: Path, out: Path | None, names: tuple[str, ...] | None, embed_mb: float
) -> None:
    from edgeflare import write_html_report
    from edgeflare.store import campaign_text, is_address

    if out is None:
        by_address = is_address(campaign_text(campaign))
        out = Path(f"{campaign.name}-report.html") if by_address else campaign / "report.html"
    page = write_html_report(campaign, out, class_names=names, embed_mb=embed_mb)
    more = f", {page.beside:,} files beside it" if page.beside else ""
    echo_err(
        f"wrote {page.path}: {size_text(page.bytes)}, "
        f"{findings_text(page.findings, page.survey_findings)}{more}"
    )
    for notice in page.notices:
        echo_err(notice)


def _write_text(
    campaign: Path, form: "ReportFormat", out: Path | None, names: tuple[str, ...] | None
) -> None:
    from edgeflare import report_text
    from edgeflare.reports import write_text_report

    if out is None:
        text = report_text(campaign, form, class_names=names)
        if sys.stdout.isatty():
            echo(text.replace("\r\n", "\n").rstrip("\n"))
        else:  # for a program: as it would be in a file
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()
        return
    summary = os.environ.get("GITHUB_STEP_SUMMARY")  # GitHub shows no other files there
    pictures = summary is None or out.resolve() != Path(summary).resolve()
    written = write_text_report(campaign, form, out, class_names=names, pictures=pictures)
    more = f", {counted(written.pictures, 'picture')} beside it" if written.pictures else ""
    echo_err(
        f"wrote {written.path}: {size_text(written.bytes)}, "
        f"{findings_text(written.findings, written.survey_findings)}{more}"
    )


def inputs(settings: "InputsSettings", json: Json = False) -> None:
    """Tell how samples enter both models, what tells it, and whether another way makes them agree."""
    from edgeflare.analysis import analysis
    from edgeflare.campaign import find_inputs
    from edgeflare.cli.display.progress import progress_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.cli.terminal import ask
    from edgeflare.document import section_blocks

    config = _config_of_pair(settings, "inputs")
    with progress_display() as progress:
        found = find_inputs(config, ask=ask, progress=progress)
    plugin: Any = analysis("inputs")
    print_result(
        json, lambda: plugin.to_json(found), lambda: section_blocks(plugin.sections(found))
    )
