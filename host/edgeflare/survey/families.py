"""The families of a survey, by name: those of images, of audio, and the user's corruptions."""

import difflib
from collections.abc import Mapping, Sequence

from edgeflare.errors import UsageError
from edgeflare.survey.audio_families import audio_families
from edgeflare.survey.family import CorruptionFamily, Family
from edgeflare.survey.image_families import image_families
from edgeflare_mutators import Corruption, Kind, MutationError, common_corruptions, operators

_NOUNS = {"image": "images", "audio": "audio"}


def families_for(
    kind: Kind,
    names: Sequence[str] = (),
    *,
    channels: int | None = None,
    rate: int | None = None,
    skip_broken: bool = False,
) -> Mapping[str, Family]:
    """Return the families of a kind by name, those of these `names` only, if there are any.

    After the built-in ones come the user's corruptions (group ``edgeflare.mutators`` of entry
    points), sorted by name. `channels` of the images: with 1, families of colour are left out.
    `rate`: the sample rate of audio in Hz; needed by the user's corruptions that ask for it.

    Raises UsageError for a name that no family of this kind has, for a family of colour where
    `channels` is 1, and for a user's corruption that can't be loaded or has a built-in family's
    name; with `skip_broken` such a corruption is left out.
    """
    grey = channels == 1
    built_in = image_families(grey=grey) if kind == "image" else audio_families(rate or 16_000)
    families = {family.name: family for family in built_in}
    for family in _users_families(kind, rate, skip_broken=skip_broken):
        if family.name in families:
            if skip_broken:
                continue
            raise UsageError(
                f"the mutation operator {family.name!r} has the name of a built-in family of the "
                "survey; rename it, or uninstall its distribution"
            )
        families[family.name] = family
    for name in names:
        if name not in families:
            raise _unknown(name, list(families), kind)
    return {name: families[name] for name in dict.fromkeys(names)} if names else families


def _users_families(kind: Kind, rate: int | None, *, skip_broken: bool) -> list[Family]:
    try:
        every = operators(kind, skip_broken=skip_broken).values()
    except MutationError as error:
        raise UsageError(str(error)) from error
    built_in = common_corruptions(kind)
    return [
        CorruptionFamily(one.name, "plugin", one, rate)
        for one in every
        if isinstance(one, Corruption) and one.name not in built_in
    ]


def _unknown(name: str, known: Sequence[str], kind: Kind) -> UsageError:
    if kind == "image" and name in (family.name for family in image_families()):
        return UsageError(
            f"the family {name!r} changes colour, and the seed inputs are grey; leave it out"
        )
    near = difflib.get_close_matches(name, known, n=1)
    suggestion = f"did you mean {near[0]!r}? " if near else ""
    return UsageError(
        f"the survey has no family {name!r} for {_NOUNS[kind]}; {suggestion}there are "
        f"{', '.join(known)}"
    )
