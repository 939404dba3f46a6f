"""What the findings of campaigns on real pairs come of.

python tests/benchmarks/explanation/causes.py --data FOLDER [--pairs LeNet-1 KWS ...] [--device loopback]
    [--seeds 40] [--no-survey] [--speech FOLDER2] [--keep FOLDER3]

A campaign (`boundary` and, but for speech, the survey) and its explanation of each pair, on a device of the
inventory, by default this machine over SSH. FOLDER2 has what deploy/speech/export_whisper.py made,
FOLDER3 keeps the campaigns: those that are there go on, finished ones are read. Of each cause the share of the findings, with its 95 % interval by
bootstrap over the seeds, of EfficientNet-Lite0 over the photographs that seeds are cut from.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from campaigns import LOOPBACK, NAMES, PLANTED, SPEECH, Campaign, Device, device_named, row, run

from edgeflare import replay_base, replay_config
from edgeflare.errors import EdgeFlareError
from edgeflare.explanation import Explanation, explain_campaign
from edgeflare.statistics import bootstrap_interval
from edgeflare.words.causes import doubt_text, layer_words, remark_text

_COLUMNS = (
    "pair", "seeds", "findings", "of the survey", "causes", "doubtful", "device queries a finding",
    "layers, mean contribution", "unmatched",
)  # fmt: skip
_LAYERS = 3
_NOTHING = 0.0005
"""A contribution that is printed as 0."""


def shares(found: Explanation, campaign: Campaign) -> str:
    """Return the share of each cause, with its interval where there are several causes."""
    cells = []
    for cause, count in found.counts.items():
        groups: dict[int | str, list[float]] = {}
        for one in found.findings:
            groups.setdefault(campaign.groups(one.seed_id), []).append(one.cause == cause)
        words = f"{cause} {100 * count / len(found.findings):.0f} %"
        if count < len(found.findings):
            low, high = bootstrap_interval(list(groups.values()))
            words += f" [{100 * low:.0f}, {100 * high:.0f}]"
        cells.append(words)
    return ", ".join(cells)


def layers(found: Explanation) -> tuple[str, str]:
    """Return the layers that contribute most, and how many of how many tensors have no counterpart."""
    if found.layers is None:
        return "", ""
    most = sorted(found.layers.layers, key=lambda one: -one.mean)[:_LAYERS]
    named = "; ".join(
        f"`{layer_words(one.name)}` {one.mean:+.3f}" for one in most if one.mean > _NOTHING
    )
    return named, str(len(found.layers.unmatched))


def measured(
    name: str, arguments: argparse.Namespace, folder: Path, device: Device
) -> tuple[str, tuple[str, ...]]:
    """Return the row of a pair, and the explanation's notices and doubts."""
    campaign = run(
        name, arguments.data, folder, device, seeds=arguments.seeds, strategy="boundary",
        speech=arguments.speech, survey=arguments.survey,
    )  # fmt: skip
    found = explain_campaign(
        campaign.folder,
        replay_config(replay_base(campaign.folder)),
        float_model=campaign.float_model,
    )
    findings = found.findings
    cells = (
        name,
        arguments.seeds,
        len(findings),
        sum(not one.id.startswith("trigger:") for one in findings),
        shares(found, campaign),
        sum(bool(one.doubt) for one in findings),
        f"{found.device_queries / len(findings):.1f}",
        *layers(found),
    )
    doubts: dict[str, int] = {}
    for one in findings:
        if text := doubt_text(one.doubt):
            doubts[text] = doubts.get(text, 0) + 1
    told = (f"doubt of {n}: {one}" for one, n in doubts.items())
    return row(cells), (*map(remark_text, found.notices), *told, *steps(found))


def steps(found: Explanation) -> Iterator[str]:
    """Yield what each step changes of the margins that are known."""
    known = [one.contributions for one in found.findings if one.contributions]
    for name, _, _ in found.rungs:
        changes = [one[name] for one in known if name in one]
        if changes:
            largest = max(map(abs, changes))
            yield f"step {name}: {median(changes):+.4f} in the median, at most {largest:.5f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", nargs="+", choices=(*NAMES, *PLANTED))
    parser.add_argument("--device", default=LOOPBACK)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--no-survey", dest="survey", action="store_false")
    parser.add_argument("--speech", type=Path)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    names = arguments.pairs or [name for name in NAMES if arguments.speech or name != SPEECH]
    print(row(_COLUMNS), row(["---"] * len(_COLUMNS)), sep="\n", flush=True)
    notices: dict[str, tuple[str, ...]] = {}
    with tempfile.TemporaryDirectory() as folder, device_named(arguments.device) as device:
        for name in names:
            place = (arguments.keep or Path(folder)).absolute() / name.replace(" ", "-")
            try:
                line, notices[name] = measured(name, arguments, place, device)
                print(line, flush=True)
            except EdgeFlareError as error:
                notices[name] = (f"failed: {error}",)
    for name, some in notices.items():
        print(f"\n{name}", *(f"- {one}" for one in some), sep="\n")


if __name__ == "__main__":
    main()
