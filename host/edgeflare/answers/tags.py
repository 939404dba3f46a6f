"""Labels of which any number apply: objects without places."""

from collections.abc import Mapping, Sequence
from typing import Any

from edgeflare.answers.detections.kind import DetectionsKind
from edgeflare.answers.kind import later


class TagsKind(DetectionsKind):
    """A class is the same object in any answer, whatever its box."""

    name = "tags"
    tasks = {"multi-label": "a score for each class, of which any number may be meant"}
    noun = "several labels"
    outputs = ("tags", "tag-logits")
    located = False
    disagreement = "the largest difference of both models' scores of a label"
    is_drawn = False

    def suits(self, original: Any, deployed: Any) -> str:
        """Return "": their outputs look as those of one label do."""
        return ""

    def interfaces(self, config: Any, task: str, original: Any, deployed: Any) -> tuple[Any, Any]:
        first, second = later(
            "edgeflare.campaign.pair.model_pair:tagging_sides", config, original, deployed
        )
        return first, second

    def settle(
        self, side: Any, raws: Sequence[Any], stated: str, whose: str, original: Any
    ) -> tuple[Any, str]:
        name = "edgeflare.campaign.pair.model_pair:scores_form"
        form, _ = later(name, side, stated, raws, whose, original)
        logits = form in ("logits", "sigmoid-logits")
        return side._replace(form="tag-logits" if logits else "tags"), ""

    def stated_output(self, form: str) -> str:
        return {"tags": "sigmoid", "tag-logits": "sigmoid-logits"}[form]

    def float_heads(self, config: Any, store: Any) -> tuple[Mapping[str, tuple[str, ...]], str]:
        """Return none: such a model has no boxes."""
        return {}, ""

    def reader(self, side: Any) -> Any:
        from edgeflare.answers.value_outputs import TagsReader

        return TagsReader(side.output, side.compared.rules, side.form == "tag-logits")


TAGS = TagsKind()
