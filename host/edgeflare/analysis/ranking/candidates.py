"""Candidates compared: those that are model files are run first, then all are ranked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BaseModel, Field

from edgeflare.analysis.campaign_verdict import check_healthy
from edgeflare.analysis.ranking.ranking import Ranking, rank_campaigns
from edgeflare.campaign.comparison import Candidates, Measure, run_candidates
from edgeflare.campaign.events import BatchWatch, silent
from edgeflare.campaign.settings.config import CampaignConfig, config_from, load_config
from edgeflare.campaign.settings.flags import Flag, FlagsOfCampaign, Typed
from edgeflare.errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from edgeflare.devices import ConnectOptions

_FILES = "Models and seeds"
_OF_CAMPAIGN = FlagsOfCampaign(
    *("original", "seeds", "input", "original_input", "deployed_input", "output"),
    *("input_name", "original_input_name", "deployed_input_name", "fixed_inputs"),
    *("original_fixed_inputs", "deployed_fixed_inputs"),
    *("original_output", "deployed_output", "output_name", "original_output_name"),
    *("deployed_output_name", "decoder", "runtime_option", "resize", "cut", "resample_audio"),
    *("labels", "limit", "device", "inventory", "python", "one_trip", "strategy", "option"),
    *("device_budget", "max_queries", "timeout", "oracle", "tolerance", "margin_floor"),
    *("task", "confidence", "nms", "match_iou", "shift_iou", "keep_boxes", "class_names"),
    *("seed", "survey_queries", "sure", "family", "reference", "allow_disagreement"),
    strategy={"help": "The search strategy; by default boundary, for the measure queries dflare."},
    option={"help": "For the strategy, as of edgeflare run; may be repeated."},
)


class CompareSettings(BaseModel, arbitrary_types_allowed=True):
    """What a comparison is told beside its candidates."""

    measure: Annotated[str | None, Flag("--measure", metavar="NAME")] = Field(
        None,
        description="What ranks: disagreement (how far both models' answers to the worst trigger are "
        "apart; the default), severity (how sure both are of different classes there) or queries (to "
        "the first trigger, as in the paper). The search follows from it.",
    )
    level: Annotated[float, Flag("--level", metavar="SHARE")] = Field(
        0.95, description="Confidence in all verdicts together."
    )
    campaign: Annotated[Path | None, Flag("--campaign", panel=_FILES)] = Field(
        None, description="A campaign.toml that says everything but the deployed model."
    )
    out: Annotated[Path | None, Flag("--out", panel=_FILES)] = Field(
        None,
        description="Folder for the candidates' campaigns; by default a new one under comparisons/. "
        "Named again, what is finished in it is kept and the rest goes on.",
    )
    stated: Annotated[Typed, _OF_CAMPAIGN] = Field(default_factory=Typed)


@dataclass(frozen=True)
class Comparison:
    """A ranking, and why candidates `failed`, by name; `folder` is that of the campaigns run for it."""

    ranking: Ranking
    failed: dict[str, str]
    folder: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the ranking's JSON object with what failed and the folder."""
        folder = None if self.folder is None else str(self.folder)
        return {**self.ranking.to_json(), "failed": self.failed, "folder": folder}


def run_models(
    candidates: Sequence[Path],
    settings: CompareSettings,
    *,
    progress: BatchWatch = silent,
    **reach: "Unpack[ConnectOptions]",
) -> Candidates | None:
    """Run a campaign with each candidate that is a model file; None where there is none.

    Raises what `run_candidates` does, and UsageError where the settings lack something or a
    reference is no healthy one.
    """
    models = [path for path in candidates if not path.is_dir()]
    if not models:
        return None
    like = _like(candidates, models[0], settings)
    return run_candidates(
        like, models, measure=settings.measure, out=settings.out, progress=progress, **reach
    )


def _campaigns(candidates: Sequence[Path], ran: Candidates | None) -> list[Path]:
    """Return the campaigns' folders, in the candidates' order, without those that failed."""
    runs = {run.model: run for run in ran.runs} if ran else {}
    folders = []
    for path in candidates:
        run = runs.get(path.expanduser().absolute())
        if run is None or run.failed is None:
            folders.append(path if run is None else run.folder)
    return folders


def rank_candidates(
    candidates: Sequence[Path], ran: Candidates | None, settings: CompareSettings
) -> Comparison:
    """Rank the campaigns of all candidates but those that failed; raises what `rank_campaigns` does."""
    measure = cast("Measure | None", settings.measure)
    ranking = rank_campaigns(_campaigns(candidates, ran), measure=measure, level=settings.level)
    return Comparison(ranking, ran.failed if ran else {}, ran.folder if ran else None)


def _like(
    candidates: Sequence[Path], model: Path, settings: CompareSettings
) -> CampaignConfig | Path:
    """Return the candidates' configuration: by flags, or the first named campaign's folder."""
    stated = settings.stated
    folder = next((path for path in candidates if path.is_dir()), None)
    if folder is not None and settings.campaign is None and not stated.values:
        return folder
    missing = [f"--{name}" for name in ("original", "seeds") if not stated.has(name)]
    values = {**stated.values, "deployed": {**stated.values.get("deployed", {}), "path": model}}
    if settings.campaign is not None:
        config = load_config(settings.campaign, values, stated.flags)
    elif missing:
        raise UsageError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: to run "
            "candidates that are model files, give both --original MODEL and --seeds FOLDER, or "
            "--campaign with a campaign.toml (`edgeflare init` writes one)"
        )
    else:
        config = config_from(values, "compare", stated.flags)
    check_healthy(config.survey.references)
    return config
