"""Inputs that a side ignores, and remarks: what an application's images may meet though the pair agrees."""

from collections.abc import Iterator
from typing import cast

import numpy as np

from edgeflare.models import InputSpec
from edgeflare.models.inferred_input import alike
from edgeflare.models.usual_inputs import values_of, values_text
from edgeflare.triage.agreement import by_seed
from edgeflare.triage.cause import IGNORED, REMARK, Cause
from edgeflare.triage.checks.usable import close
from edgeflare.triage.model import HostModel
from edgeflare.triage.pair import Pair
from edgeflare.triage.ways import Way
from edgeflare_agent.image_spec import RESIZES
from edgeflare_agent.preprocess import oriented

_SEEDS = 8
_OF_LABELLED = 60
_MANY = 0.1


def ignored_inputs(pair: Pair) -> Iterator[Cause]:
    """Yield inputs that change no answer of the deployed model, though they do of the original."""
    if len(pair.deployed.inputs) < 2 or len(pair.places) < 2:
        return
    for place, info in enumerate(pair.deployed.inputs):
        if place >= len(pair.original.inputs):
            continue
        changed = [_changed_by(pair, model, place) for model in pair.models]
        if changed[0] and not changed[1]:
            yield Cause(
                "conversion",
                "input-ignored",
                "located",
                IGNORED,
                names=(info.name,),
                evidence={"changed": changed[0], "of": min(_SEEDS, len(pair.places) - 1)},
                gain=30,
            )


def _changed_by(pair: Pair, model: HostModel, place: int) -> int:
    """Return on how many seeds another seed's value of one input changes the answer."""
    changed = 0
    for seed, following in zip(pair.places[:_SEEDS], pair.places[1:], strict=False):
        tensors = list(pair.tensors(model, seed))
        before = model.run(tensors)
        tensors[place] = pair.tensors(model, following)[place]
        changed += not close(before, model.run(tensors))
    return changed


def statements(pair: Pair) -> Iterator[Cause]:
    """Yield as remarks what is stated of a model's input and isn't what its file tells."""
    for model in pair.models:
        spec, told = model.spec, model.inference.known
        if not isinstance(spec, InputSpec) or told is None or not told.options.has_scaling:
            continue
        if alike(values_of(spec), told.options):
            continue
        inside = told.source == "first-operators"
        options = told.options.model_dump(
            include={"scale", "mean", "std", "color"}, exclude_none=True
        )
        change = {
            name: ",".join(f"{number:.9g}" for number in value)
            if isinstance(value, tuple)
            else str(value)
            for name, value in options.items()
        }
        yield Cause(
            "preprocessing",
            "normalises-inside" if inside else "contradicts-file",
            "read",
            REMARK + 0.1,
            side="original" if model.side == "original" else "deployed",
            names=told.names if inside else (),
            evidence={
                "stated": values_text(values_of(spec)),
                "told": values_text(told.options),
                **told.told_by(),
            },
            change=change,
            is_remark=True,
        )


def resize_rule(pair: Pair) -> Iterator[Cause]:
    """Yield as a remark that the original's answers depend on how images are made smaller."""
    model, classes = pair.original, pair.classes_at
    spec = cast("InputSpec", model.spec)  # clips have no sizes
    is_resized = any(size != spec.upright_size for size in pair.sizes)
    if classes is None or not is_resized or spec.resize is None:
        return
    labels = pair.seeds.labels
    labelled = [place for place, label in enumerate(labels) if label >= 0][:_OF_LABELLED]
    places = labelled or pair.places

    def decided(way: Way) -> list[int]:
        answers = pair.answers(model, way, list(places))
        return [] if answers is None else by_seed(answers[classes]).argmax(axis=1).tolist()

    def right(decisions: list[int]) -> int:
        return sum(
            labels[place] == decision for place, decision in zip(places, decisions, strict=True)
        )

    stated = decided(Way(spec))
    rows = []
    for rule in RESIZES:
        if rule != spec.resize:
            decisions = decided(Way(spec._replace(resize=rule)))
            changed = sum(before != after for before, after in zip(stated, decisions, strict=True))
            rows.append((right(decisions) if labelled else 0, changed, rule))
    if max(changed for _, changed, _ in rows) < _MANY * len(stated):
        return
    best = max(rows)
    evidence = {"stated": spec.resize, "rule": best[2], "changed": best[1], "of": len(stated)}
    if labelled:
        evidence |= {"right": best[0], "right_stated": right(stated)}
    yield Cause(
        *("resize-rule", "answers-depend", "corrected", REMARK + 0.05, "both"),
        evidence=evidence,
        is_remark=True,
    )


def exif(pair: Pair) -> Iterator[Cause]:
    """Yield as a remark that images are turned by an EXIF tag, which an application may ignore."""
    turned = sorted(pair.seeds.orientations)
    if not turned:
        return
    model, classes = pair.deployed, pair.classes_at
    changed, tried = 0, turned[:_OF_LABELLED]
    for place in tried:
        sample, row = pair.seeds.samples[place], pair.seeds.row(place)
        ignored = np.ascontiguousarray(oriented(sample, pair.seeds.orientations[place]))
        upright, answers = (
            model.run(model.tensors(image, Way(model.spec), row)) for image in (sample, ignored)
        )
        if classes is None:
            changed += not close(upright, answers)
        else:
            changed += bool(upright[classes].argmax() != answers[classes].argmax())
    yield Cause(
        *("exif", "turned", "corrected", REMARK + 0.1, "device"),
        evidence={
            "turned": len(turned),
            "of": len(pair.seeds.samples),
            "changed": changed,
            "tried": len(tried),
        },
        is_remark=True,
    )
