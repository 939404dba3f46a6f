"""EdgeFlare's own analyses of campaigns' stored answers: soundness and agreement."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, Field

from edgeflare.analysis.agreement import Agreements, agreements
from edgeflare.analysis.base import Analysis, RunContext
from edgeflare.analysis.campaign_verdict import TONES, campaign_soundness
from edgeflare.analysis.soundness import Soundness
from edgeflare.campaign.settings.flags import Flag
from edgeflare.document import Block, Item, Listing, Section, Text
from edgeflare.errors import UsageError
from edgeflare.reports.devices import agreement_blocks
from edgeflare.store import Store
from edgeflare.words.soundness import evidence_sentences, soundness_sentence


class SoundnessSettings(BaseModel):
    """How sure the verdict is to be."""

    confidence: Annotated[float, Flag("--confidence", metavar="SHARE")] = Field(
        0.95, gt=0.5, lt=1, description="Confidence in the verdict."
    )


class _Soundness(Analysis[SoundnessSettings, Soundness]):
    name = "soundness"
    about = "Judge a campaign's deployed model against its healthy references and its labels."
    settings = SoundnessSettings
    result = Soundness
    stored = False

    def run(self, campaign: Store, settings: SoundnessSettings, context: RunContext) -> Soundness:
        del context
        found = campaign_soundness(campaign, confidence=settings.confidence)
        if found is None:
            raise UsageError(
                f"{campaign.folder} has no reference, and labels don't tell that the deployed model is "
                "worse: run it with --reference int8 or --reference CAMPAIGN"
            )
        return found

    def sections(self, result: Soundness) -> Iterator[Section]:  # type: ignore[override]
        evidence = tuple(Item(text) for text in evidence_sentences(result))
        blocks = (Text(soundness_sentence(result), TONES[result.verdict]), Listing(evidence))
        yield Section("soundness", "Verdict", blocks, order=10)


class AgreementSettings(BaseModel):
    """There are none."""


class _Agreement(Analysis[AgreementSettings, Agreements]):
    name = "agreement"
    about = "Compare the answers of devices that searched for themselves, each two of them."
    settings = AgreementSettings
    result = Agreements
    stored = False

    def run(self, campaign: Store, settings: AgreementSettings, context: RunContext) -> Agreements:
        del settings, context
        pairs, every_device = agreements(campaign)
        if not pairs:
            raise UsageError(
                f"the devices of {campaign.folder} shared the seeds, or there is one: run it with "
                "several devices and --fleet replicate"
            )
        return Agreements(pairs, every_device)

    def sections(self, result: Agreements) -> Iterator[Block]:  # type: ignore[override]
        yield from agreement_blocks(result.pairs, result.every_device)


SOUNDNESS, AGREEMENT = _Soundness(), _Agreement()
