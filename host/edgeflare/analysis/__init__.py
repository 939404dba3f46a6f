"""What a campaign's folder says: figures and pictures. Reads the store, and nothing else."""

from edgeflare.analysis.agreement import Agreement, Compared, EveryDevice, OneSided
from edgeflare.analysis.control import ControlFigures
from edgeflare.analysis.devices import DeviceFigures, Transfer
from edgeflare.analysis.export import ExportReport, export_campaign
from edgeflare.analysis.figures import Failure, LabelPair, Spread
from edgeflare.analysis.summary import Summary, summarize
from edgeflare.analysis.telemetry import TelemetryFigures
from edgeflare.analysis.triggers import TriggerFigures
from edgeflare.analysis.unlike import Unlike

__all__ = [
    "Agreement",
    "Compared",
    "ControlFigures",
    "DeviceFigures",
    "EveryDevice",
    "ExportReport",
    "Failure",
    "LabelPair",
    "OneSided",
    "Spread",
    "Summary",
    "TelemetryFigures",
    "Transfer",
    "TriggerFigures",
    "Unlike",
    "export_campaign",
    "summarize",
]
