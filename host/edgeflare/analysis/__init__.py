"""What a campaign's folder says: figures and pictures. Reads the store, and nothing else."""

from edgeflare.analysis.export import ExportReport, export_campaign
from edgeflare.analysis.summary import LabelPair, Spread, Summary, summarize

__all__ = ["ExportReport", "LabelPair", "Spread", "Summary", "export_campaign", "summarize"]
