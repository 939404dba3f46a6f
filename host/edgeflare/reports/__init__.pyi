# The public names, each with the part it comes from; read at run time, too.
# ruff: noqa: I001 - one import a part

from .campaign import summary_document as summary_document
from .corpus import additions_document as additions_document
from .corpus import corpus_document as corpus_document
from .corpus import removed_document as removed_document
from .document import Block as Block
from .document import Column as Column
from .document import Table as Table
from .document import Text as Text
from .document import print_document as print_document
from .document import table_of as table_of
from .ranking import ranking_document as ranking_document
from .replay import replay_document as replay_document
from .replay import reproductions_document as reproductions_document
from .export import ExportReport as ExportReport
from .export import export_campaign as export_campaign
from .html.page import HtmlReport as HtmlReport
from .html.page import write_html_report as write_html_report
from .text_reports import ReportFormat as ReportFormat
from .text_reports import TextReport as TextReport
from .text_reports import report_text as report_text
from .text_reports import write_text_report as write_text_report
