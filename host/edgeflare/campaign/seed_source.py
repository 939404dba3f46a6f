"""The seeds that a campaign's configuration names, as its original model takes them."""

from edgeflare.campaign.config import CampaignConfig, SeedsConfig
from edgeflare.campaign.pair_outputs import transcribes
from edgeflare.errors import UsageError
from edgeflare.models import InputOptions, OriginalModel, audio_input, known_of
from edgeflare.models.input_options import input_size, options_in_file
from edgeflare.search import check_audio_search, check_operators
from edgeflare.seeds import SeedSource, load_label_mapping, open_audio_seeds, open_seeds

_WHOSE = "the original model"
_FOR_IMAGES = ("size", "resize")
_FOR_AUDIO = ("cut", "resample")
_FRONT_END = (
    ", or if it takes audio state its front end, for example `--input front_end=mlperf-tiny-kws`"
)


def seed_source(config: CampaignConfig, original: OriginalModel) -> SeedSource:
    """Look for the seeds; none is read yet.

    Raises SeedError where there are none, UsageError for options and mutation operators that the model's kind of input,
    and its kind of answer, has no use for, and where a library that the search from audio needs is missing.
    """
    seeds = config.seeds
    audio = audio_taken(config, original)
    check_operators(config.search.operators, "image" if audio is None else "audio")
    if audio is None:
        _refuse(seeds, _FOR_AUDIO, "audio", "images")
        return _images(config, original)
    _refuse(seeds, _FOR_IMAGES, "images", "audio")
    search, words = config.search, transcribes(config.original, original.decoder)
    check_audio_search(search.strategy, search.options, search.operators, words=words)
    rate, samples = audio
    return open_audio_seeds(
        seeds.path,
        rate=rate,
        samples=samples,
        cut=seeds.cut,
        resample=seeds.resample,
        labels=_labels(seeds),
        limit=seeds.limit,
    )


def audio_taken(config: CampaignConfig, original: OriginalModel) -> tuple[int, int | None] | None:
    """Return (rate in Hz, samples; None for clips of any length) of models of audio, None for those of images.

    What the original's file and input don't tell, the deployed model's stated input does. Raises UsageError.
    """
    return audio_input(original.input, config.original.input, _told(config, original), _WHOSE)


def _told(config: CampaignConfig, original: OriginalModel) -> InputOptions:
    in_file = options_in_file(original.metadata, str(original.path))
    return known_of(in_file, config.deployed.input, InputOptions())


def _images(config: CampaignConfig, original: OriginalModel) -> SeedSource:
    seeds, told = config.seeds, _told(config, original)
    if seeds.size and not (config.original.input.size or told.size):
        told = told.model_copy(update={"size": seeds.size})
    size, channels = input_size(original.input, config.original.input, told, _WHOSE)
    return open_seeds(
        seeds.path,
        size=seeds.size or size,
        channels=channels,
        resize=seeds.resize,
        labels=_labels(seeds),
        limit=seeds.limit,
    )


def _labels(seeds: SeedsConfig) -> dict[str, int] | None:
    return load_label_mapping(seeds.labels) if seeds.labels else None


def _refuse(seeds: SeedsConfig, names: tuple[str, ...], theirs: str, takes: str) -> None:
    for name in names:
        if getattr(seeds, name):
            raise UsageError(
                f"seeds.{name} is for {theirs}, and {_WHOSE} takes {takes}: leave it out"
                + _FRONT_END * (takes == "images")
            )
