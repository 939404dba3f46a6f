"""Which output of each model counts, and whether it holds scores or, in the deployed model, a label alone."""

from collections.abc import Sequence

from edgeflare.campaign.config import ModelConfig
from edgeflare.errors import ModelError
from edgeflare.models import TensorInfo, check_index, has_one_value, is_index, output_classes


def choose_output(outputs: Sequence[TensorInfo], config: ModelConfig, whose: str) -> TensorInfo:
    """Return the output that counts: the one that is named, or the only one. Raises ModelError."""
    names = [tensor.name for tensor in outputs]
    if config.output_name is None:
        if len(outputs) == 1:
            return outputs[0]
        raise ModelError(
            f"{whose} has {len(outputs)} outputs ({', '.join(names)}); name the one with the class "
            "scores with `output_name` in campaign.toml"
        )
    if config.output_name not in names:
        raise ModelError(f"{whose} has no output {config.output_name!r}; it has {', '.join(names)}")
    return outputs[names.index(config.output_name)]


def original_classes(output: TensorInfo, config: ModelConfig) -> int:
    """Return how many classes there are: as many as the original has scores.

    Raises ModelError where its output is none of scores.
    """
    unknown = output.shape in ((), (None,))  # so is one whose rank the file leaves open
    if config.output == "label":
        raise ModelError(
            "the original model is stated to return labels, as `--output label` states of both models; "
            "only the deployed one may: use `--deployed-output label`"
        )
    if is_index(output) or (has_one_value(output) and not unknown):
        raise ModelError(
            f"output {output.name!r} of the original model is one value, not a score for each class: the "
            "search needs the original's scores, so give the original as it was before it was made to "
            "tell a label alone (only the deployed model may: `--deployed-output label`)"
        )
    return output_classes(output, "the original model")


def tells_label(output: TensorInfo, config: ModelConfig, classes: int) -> bool:
    """Whether the deployed model's output is a class index, as stated or told from its type and shape.

    Raises ModelError where it is none and has no score for each of the original's `classes` either.
    """
    if config.output == "label" or (config.output == "auto" and is_index(output)):
        check_index(output)
        return True
    if has_one_value(output):
        raise ModelError(
            f"output {output.name!r} of the deployed model is one value ({output.dtype}) where the "
            f"original has {classes} classes; if it is the class index, state `--deployed-output label`"
        )
    count = output_classes(output, "the deployed model")
    if classes != count:
        raise ModelError(
            f"the original model has {classes} classes and the deployed model {count}: they "
            "are not two versions of one model"
        )
    return False
