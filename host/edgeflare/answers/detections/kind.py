"""Boxes with classes and scores: a deviation is an object lost, seen alone, of another class, or moved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.detections.matching import (
    DIFFERENCE_KINDS,
    Difference,
    differences,
    kind_counts,
    score_distance,
    summary,
    worst,
)
from edgeflare.answers.detections.settings import DetectionConfig
from edgeflare.answers.detections.words import (
    KIND_VERBS,
    KIND_WORDS,
    class_words,
    differences_words,
    with_names,
)
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.parts import (
    Card,
    LimitRule,
    Margins,
    Name,
    ObjectCounts,
    Pieces,
    decision_of,
    jsonable,
    later,
)
from edgeflare.document import KeyFigure, Section
from edgeflare.types import Decision, DetectionRules, Detections, Sample
from edgeflare.words.answers import BOXES, BROKEN, OF_DETECTIONS

if TYPE_CHECKING:
    from edgeflare.answers.detections.figures import DetectionFigures


class DetectionsKind(AnswerKind[Detections]):
    """Objects with places."""

    name = "detections"
    tasks: ClassVar[Mapping[str, str]] = {"detection": BOXES}
    noun = "detections"
    outputs: ClassVar[tuple[str, ...]] = ("detections",)
    boundary = "edgeflare.strategies.boundary.strategy:search_objects"
    boundary_by_distance = boundary
    counts_objects = True
    boundary_options = "detections"
    boundary_noun = "detectors"
    lacks = "pairs of classes"
    is_drawn: ClassVar[bool] = True
    page_part = "differences"
    report_words = OF_DETECTIONS
    settings = DetectionConfig
    located: ClassVar[bool] = True
    """Whether objects have places."""

    def accepts(self, answer: object) -> bool:
        """Whether these are objects; those without places are of the kind `tags`, too."""
        return isinstance(answer, Detections) and (self.located or not answer.rules.located)

    def suits(self, original: Any, deployed: Any) -> str | None:
        """Return the format that the original's outputs have in words, of a model of upright images."""
        from edgeflare.answers.detections.interfaces import detecting_reason

        return detecting_reason(original, deployed)

    def interfaces(self, task: str, settings: Any, original: Any, deployed: Any) -> tuple[Any, Any]:
        from edgeflare.answers.detections.interfaces import detector_interfaces

        return detector_interfaces(settings, original, deployed)

    def settle(
        self, side: Any, raws: Sequence[Any], stated: str, whose: str, original: Any
    ) -> tuple[Any, str]:
        from edgeflare.answers.detections.interfaces import settled

        side, notice = settled(side, raws, whose, original)
        return side._replace(form="detections"), notice

    def reader(self, side: Any) -> Any:
        from edgeflare.answers.detections.formats import DetectionReader

        compared = side.compared
        return DetectionReader(side.outputs, side.detector, side.size, compared.rules, compared.nms)

    def numbers(self, answer: Detections) -> NDArray[np.float64]:
        return np.concatenate([answer.scores[:, None], answer.boxes], axis=1)

    def agree(self, original: Detections, deployed: Detections) -> bool:
        return not differences(original, deployed)

    def decide(self, original: Detections, deployed: Detections, floor: float = 0.0) -> Decision:
        """Decide as any kind does, with the boxes of both matched once."""
        if not (self.is_finite(original) and self.is_finite(deployed)):
            return Decision.NONFINITE
        largest = worst(differences(original, deployed))
        return Decision.AGREE if largest is None else decision_of(min(largest.margins), floor)

    def changes(self, original: Detections, deployed: Detections) -> Sequence[Difference]:
        return differences(original, deployed)

    def distance(self, original: Detections, deployed: Detections) -> float:
        """Return the largest difference of the scores of an object."""
        return score_distance(original, deployed)

    def margin(self, answer: Detections) -> float | None:
        """Return the smallest distance of a score from the confidence; None without a box."""
        return min(np.abs(answer.scores - answer.rules.confidence).tolist(), default=None)

    def margins(self, original: Detections, deployed: Detections) -> Margins:
        """Return the margins of the worst difference."""
        largest = worst(differences(original, deployed))
        return Margins(*largest.margins) if largest else super().margins(original, deployed)

    def is_below(self, answer: Detections, floor: float) -> bool:
        """Never: another object may be lost beside the one that is nearest to the confidence."""
        return False

    def object_counts(
        self, original: Detections, deployed: Detections, clear: float
    ) -> ObjectCounts | None:
        """Return the objects of both; one that has shifted doesn't differ."""
        unlike = [one for one in differences(original, deployed) if one.kind != "shift"]
        return ObjectCounts(
            original.count + kind_counts(unlike)["ghost"],
            original.count,
            sum(difference.margin >= clear for difference in unlike),
        )

    def certainty(self, answer: Detections) -> float | None:
        return 1.0 if self.is_finite(answer) else None

    def is_sure_of_difference(
        self, original: Detections, deployed: Detections, sure: float
    ) -> bool:
        rules = original.rules
        largest = {"ghost": rules.confidence, "shift": rules.shift_iou}
        return any(
            difference.margins[0] >= sure * largest.get(difference.kind, 1.0 - rules.confidence)
            for difference in differences(original, deployed)
        )

    def is_same(self, first: Detections, second: Detections) -> bool:
        return np.array_equal(first.labels, second.labels) and super().is_same(first, second)

    def finding(self, original: Detections, deployed: Detections) -> str:
        """Return the kind of the worst difference; "" where nothing differs."""
        largest = worst(differences(original, deployed))
        return largest.kind if largest else ""

    def state(self, answer: Detections) -> NDArray[np.float64]:
        return answer.scores

    def to_columns(self, answer: Detections) -> tuple[bytes, Pieces]:
        data = np.asarray(self.numbers(answer), dtype="<f8").tobytes()
        return data, {"labels": answer.labels.tolist(), "rules": [*answer.rules]}

    def from_columns(self, data: bytes, pieces: Any) -> Detections:
        numbers = np.frombuffer(data, dtype="<f8").astype(np.float64).reshape(-1, 5)
        labels = np.array(pieces["labels"], np.int64)
        if labels.shape != numbers.shape[:1]:
            raise ValueError("labels and boxes differ in number")
        rules = DetectionRules(*pieces["rules"])
        shares = rules.confidence, rules.match_iou, rules.shift_iou
        if not all(type(share) in (int, float) and 0 <= share <= 1 for share in shares) or (
            type(rules[3]) is not bool
        ):
            raise ValueError(f"{str(pieces['rules'])[:99]} are no rules of detections")
        return Detections(numbers[:, 1:].copy(), labels, numbers[:, 0].copy(), rules)

    def text(self, answer: Detections) -> str | None:
        return summary(answer)

    def difference(
        self, original: Detections, deployed: Detections, name: Name = str
    ) -> str | None:
        if not (self.is_finite(original) and self.is_finite(deployed)):
            return BROKEN
        return differences_words(original, deployed, name)

    def to_cell(self, answer: Detections) -> Any:
        parts = (
            part[: answer.count].tolist() for part in (answer.labels, answer.scores, answer.boxes)
        )
        return [
            {"label": label, "score": jsonable(score), "box": jsonable(box)}
            for label, score, box in zip(*parts, strict=True)
        ]

    def differences_json(
        self, original: Detections, deployed: Detections
    ) -> list[dict[str, Any]] | None:
        if not (self.is_finite(original) and self.is_finite(deployed)):
            return []
        return [
            {
                "kind": difference.kind,
                "label": difference.label,
                "deployed_label": difference.deployed_label,
                "scores": [
                    None if place is None else float(answer.scores[place])
                    for place, answer in (
                        (difference.original, original),
                        (difference.deployed, deployed),
                    )
                ],
                "iou": difference.iou,
                "margins": list(difference.margins),
            }
            for difference in differences(original, deployed)
        ]

    def answer_words(self, answer: Detections, name: Name = str) -> str:
        return with_names(summary(answer), name)

    def pair_words(self, key: str, name: Name) -> str:
        """Return a `pair_key` in words: ``lost person``."""
        kind, _, label = key.partition(":")
        words = {str(kind): words for kind, words in KIND_WORDS.items()}
        return f"{words[kind]} {class_words(int(label), name)}"

    def panel(
        self, sample: Sample, original: Detections, deployed: Detections
    ) -> Sequence[Sample] | None:
        if not self.located:
            return None
        from edgeflare.answers.detections.pictures import box_marks, drawn

        marks = box_marks(original, deployed, differences(original, deployed))
        return [drawn(sample, one) for one in marks]

    def float_heads(self, config: Any, store: Any) -> tuple[Mapping[str, tuple[str, ...]], str]:
        """Return the detector's heads, which end in the boxes and in the scores; none without boxes."""
        if not self.located:
            return {}, ""
        heads, why = later("edgeflare.repair.in_float:detector_heads", config, store)
        return heads, why

    def card(self, original: Detections, deployed: Detections, seed: Sequence[Any] = ()) -> Card:
        from edgeflare.answers.detections.pictures import card

        finite = self.is_finite(original) and self.is_finite(deployed)
        return card(original, deployed, seed, finite=finite)

    def figures(
        self, seeds: Iterable[Any], triggers: Iterable[Any], settings: Mapping[str, Any]
    ) -> Any:
        from edgeflare.answers.detections.figures import DetectionFigures, difference_counts

        floor = float((settings.get("search") or {}).get("margin_floor") or 0.0)
        return DetectionFigures(
            difference_counts(seeds, floor),
            difference_counts(triggers, floor),
            dict(settings.get("detection") or {}),
        )

    def figures_json(self, figures: "DetectionFigures") -> dict[str, Any]:
        return {"detection": asdict(figures)}

    def seed_differences(self, figures: "DetectionFigures") -> Any:
        return figures.seeds

    def checks(self) -> Sequence[LimitRule]:
        """Return the limits of the kinds of differences; without places the first two."""
        from edgeflare.answers.detections.figures import objects_by_kind

        return [
            LimitRule(
                f"max_{kind}",
                "deployed model" if kind == "ghost" else "original",
                KIND_VERBS[kind],
                partial(objects_by_kind, kind),
            )
            for kind in (DIFFERENCE_KINDS if self.located else DIFFERENCE_KINDS[:2])
        ]

    def key_figures(self, figures: "DetectionFigures") -> Iterable[KeyFigure]:
        yield from later("edgeflare.reports.sections.differences:detection_figures", figures)

    def setting_figures(
        self, figures: "DetectionFigures", models: Mapping[str, Any]
    ) -> Iterable[KeyFigure]:
        yield from later(
            "edgeflare.reports.sections.differences:detector_figures", figures.settings, models
        )

    def sections(
        self, figures: "DetectionFigures", name: Name, *, is_replay: bool = False
    ) -> Iterable[Section]:
        settings = {"is_replay": is_replay, "is_located": self.located}
        yield later(
            "edgeflare.reports.sections.differences:differences_section", figures, name, **settings
        )


DETECTIONS = DetectionsKind()
