# The public names; read at run time, too.
# ruff: noqa: I001 - one import a part

from .render.terminal import summary_document as summary_document
from .document import (
    Block as Block,
    Column as Column,
    CommandLine as CommandLine,
    Item as Item,
    Listing as Listing,
    Table as Table,
    Text as Text,
    print_document as print_document,
    table_of as table_of,
)
from .explanation import (
    explanation_document as explanation_document,
    shrunk_document as shrunk_document,
    write_node_data as write_node_data,
)
from .export import ExportReport as ExportReport, export_campaign as export_campaign
from .repair.fine_tuning import (
    FineTuningSet as FineTuningSet,
    write_fine_tuning as write_fine_tuning,
)
from .html.page import HtmlReport as HtmlReport, write_html_report as write_html_report
from .mlflow_run import MlflowRun as MlflowRun, log_to_mlflow as log_to_mlflow
from .analyses import ranking_document as ranking_document
from .repair.recipes import (
    recipes_document as recipes_document,
    write_front as write_front,
)
from .repair.results import (
    SNIPPETS as SNIPPETS,
    repaired_document as repaired_document,
    write_curve as write_curve,
)
from .replay import (
    additions_document as additions_document,
    corpus_document as corpus_document,
    removed_document as removed_document,
    replay_document as replay_document,
    reproductions_document as reproductions_document,
)
from .text_reports import (
    ReportFormat as ReportFormat,
    TextReport as TextReport,
    report_text as report_text,
    write_text_report as write_text_report,
)

import edgeflare_whitebox.reports as _reports

coverage_document = _reports.coverage_document
importance_document = _reports.importance_document
priority_document = _reports.priority_document
classes_document = _reports.classes_document
units_document = _reports.units_document
