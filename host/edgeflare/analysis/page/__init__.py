"""A campaign as a page that people open: one HTML file, without a network."""

from edgeflare.analysis.page.report import HtmlReport, write_html_report
from edgeflare.analysis.page.templates import embedded_json, render

__all__ = ["HtmlReport", "embedded_json", "render", "write_html_report"]
