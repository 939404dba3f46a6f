"""Labels of which any number apply: objects without places."""

from collections.abc import Sequence
from typing import Any

from edgeflare.answers.detections.kind import DetectionsKind
from edgeflare.answers.scores import SCORES
from edgeflare.words.answers import ANY_CLASSES, OF_TAGS


class TagsKind(DetectionsKind):
    """A class is the same object in any answer, whatever its box."""

    name = "tags"
    tasks = {"multi-label": ANY_CLASSES}
    noun = "several labels"
    outputs = ("tags", "tag-logits")
    located = False
    report_words = OF_TAGS
    is_drawn = False
    stated_outputs = SCORES.stated_outputs[:-1]

    def suits(self, original: Any, deployed: Any) -> str | None:
        """Return None: their outputs look as those of one label do."""
        return None

    def interfaces(self, task: str, settings: Any, original: Any, deployed: Any) -> tuple[Any, Any]:
        from edgeflare.answers.class_interfaces import class_outputs
        from edgeflare.answers.interface import Comparison, ModelInterface, check_same_classes
        from edgeflare.answers.outputs import has_one_value, output_classes

        models, outputs = (original, deployed), class_outputs(original, deployed)
        counts = [
            1 if has_one_value(output) else output_classes(output, model.whose)
            for model, output in zip(models, outputs, strict=True)
        ]
        check_same_classes(*counts)
        compared = Comparison(settings.rules(located=False))
        first, second = (
            ModelInterface(model.spec, output, kind=self, task=task, compared=compared)
            for model, output in zip(models, outputs, strict=True)
        )
        return first, second

    def settle(
        self, side: Any, raws: Sequence[Any], stated: str, whose: str, original: Any
    ) -> tuple[Any, str]:
        from edgeflare.answers.class_interfaces import scores_form

        form, _ = scores_form(side, stated, raws, whose, original)
        logits = form in ("logits", "sigmoid-logits")
        return side._replace(form="tag-logits" if logits else "tags"), ""

    def stated_output(self, form: str) -> str:
        return {"tags": "sigmoid", "tag-logits": "sigmoid-logits"}[form]

    def reader(self, side: Any) -> Any:
        from edgeflare.answers.value_outputs import TagsReader

        return TagsReader(side.output, side.compared.rules, side.form == "tag-logits")


TAGS = TagsKind()
