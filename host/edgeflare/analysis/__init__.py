"""What a campaign's folder says: figures and pictures. Reads the store, and nothing else."""

from edgeflare.analysis.control import ControlFigures
from edgeflare.analysis.devices import DeviceFigures, Transfer
from edgeflare.analysis.export import ExportReport, export_campaign
from edgeflare.analysis.figures import Failure, LabelPair, Spread
from edgeflare.analysis.summary import Summary, summarize
from edgeflare.analysis.triggers import TriggerFigures

__all__ = [
    "ControlFigures",
    "DeviceFigures",
    "ExportReport",
    "Failure",
    "LabelPair",
    "Spread",
    "Summary",
    "Transfer",
    "TriggerFigures",
    "export_campaign",
    "summarize",
]
