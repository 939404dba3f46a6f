"""A campaign as a page that people open: one HTML file, without a network."""

from edgeflare.reports.html.page import HtmlReport, write_html_report
from edgeflare.reports.html.templates import embedded_json, render

__all__ = ["HtmlReport", "embedded_json", "render", "write_html_report"]
