"""The survey: inputs far from the seeds, on which the original is sure."""

from edgeflare.survey.families import families_for
from edgeflare.survey.family import PARAMS_ERRORS, PARTNERS, SEVERITIES, Drawn, Family

__all__ = ["PARAMS_ERRORS", "PARTNERS", "SEVERITIES", "Drawn", "Family", "families_for"]
