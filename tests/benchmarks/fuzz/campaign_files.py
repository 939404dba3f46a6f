"""Damages a small finished campaign at random, again and again, and reads it with the commands that read one.

python tests/benchmarks/fuzz/campaign_files.py [--seconds 300] [--seed 0] [--only N] [--keep-going]

One campaign of the demo's models with a control and two searching devices, a replay of it, a corpus and a campaign.toml
are made first. Each round copies them, changes one thing (a cell of a database, a row, bytes of the file, live.json,
a sample, the campaign.toml) and runs some of the commands in this process. Nothing may end with exit code 70, a
traceback, or not within three minutes. Prints the number of commands and the peak of memory; ends with 1 and the round's
number (for --only) where something did.
"""

import argparse
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from campaign_damage import NO_DEVICE, Hang, cut, damage, run
from command import DEMO

CAMPAIGN = f"""
devices = ["local", "local"]
control = true
[original]
path = "{DEMO / "original.onnx"}"
[deployed]
path = "{DEMO / "deployed.tflite"}"
[seeds]
path = "{DEMO / "seeds.npz"}"
limit = 3
[search]
seed = 1
max_queries = 100
max_host_queries = 3000
options = {{ crossing = "least-l2" }}
[fleet]
mode = "replicate"
[limits]
max_seed_deviation_rate = 0.5
min_l2 = 0.1
"""
A_ROUND = 5
"""So many of the commands are run on what was damaged."""
_REPORTS = ("html", "json", "junit", "markdown", "csv")


def prepare(home: Path) -> None:
    """Make the campaign, its replay, a corpus of it and its campaign.toml."""
    (home / "campaign.toml").write_text(CAMPAIGN)
    made = [run("run", home / "campaign.toml", "--out", home / "campaign", seconds=900)]
    made.append(run("replay", home / "campaign", "--device", "local", "--out", home / "replay"))
    made.append(run("corpus", "add", home / "corpus", home / "campaign"))
    assert all(one.code in (0, 1) for one in made), made
    unreachable = CAMPAIGN.replace('"local", "local"', f'"{NO_DEVICE}"')
    (home / "campaign.toml").write_text(unreachable.replace("control = true", 'out = "new"'))


def commands(home: Path, what: str, rng: random.Random) -> Iterator[tuple[object, ...]]:
    """Yield every command that reads what was damaged."""
    folder = home / what
    if what == "campaign.toml":
        yield ("run", folder)
        return
    if what == "corpus":
        yield ("corpus", "show", folder)
        yield ("corpus", "show", folder, "--json")
        yield ("corpus", "add", folder, home / "replay")
        models = ("--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite")
        yield ("replay", folder, *models, "--device", NO_DEVICE, "--out", home / "new")
        yield ("corpus", "remove", folder, "--agreeing-for", "1")
        return
    for name in ("show", "status"):
        yield (name, folder)
        yield (name, folder, "--json")
    for form in _REPORTS:
        yield ("report", folder, "--format", form, "--out", home / f"report.{form}")
    yield ("export", folder, home / "exported")
    yield ("corpus", "add", home / "more", folder)
    yield ("compare", folder, home / "campaign", "--out", home / "compared")
    yield ("replay", folder, "--device", NO_DEVICE, "--out", home / "new")
    # A campaign that says that it isn't finished is searched on.
    yield ("resume", folder, *(("--device", NO_DEVICE) if rng.random() < 0.9 else ()))


def round_of(number: int, seed: int, template: Path, home: Path) -> tuple[str, Counter[str]]:
    """Damage a copy once and run every command on it; return what was damaged, and how the commands ended."""
    rng = random.Random(f"{seed}/{number}")
    shutil.copytree(template, home)
    (what,) = rng.choices(("campaign", "replay", "corpus", "campaign.toml"), (8, 4, 3, 2))
    ended: Counter[str] = Counter()
    if what == "campaign.toml":
        data = cut((home / what).read_bytes(), rng)
        (home / what).write_bytes(data)
        done = f"campaign.toml: {data!r:.1000}"
    else:
        done = "; ".join(damage(home / what, rng) for _ in range(rng.choice((1, 1, 2))))
    try:
        every = list(commands(home, what, rng))
        for command in rng.sample(every, min(len(every), A_ROUND)):
            ran = run(*command)
            ended[f"{command[0]} {ran.code}"] += 1
    except BaseException as error:
        error.add_note(f"round {number}: {what}: {done}") if hasattr(error, "add_note") else None
        raise
    return done, ended


def main() -> int:
    """Run rounds until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this round alone")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first round")
    parser.add_argument("--keep-going", action="store_true", help="go on after a fault")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    ended: Counter[str] = Counter()
    faults = 0
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["HOME"] = temporary
        template, home = Path(temporary) / "template", Path(temporary) / "home"
        template.mkdir()
        prepare(template)
        began, number = time.monotonic(), args.first
        while time.monotonic() - began < args.seconds:
            number = args.only if args.only is not None else number + 1
            try:
                done, some = round_of(number, args.seed, template, home)
                ended += some
                if args.only is not None:
                    print(done, dict(some))
            except (AssertionError, Hang, MemoryError) as error:
                faults += 1
                traceback.print_exception(error)
                if not args.keep_going:
                    return 1
            finally:
                shutil.rmtree(home, ignore_errors=True)
            if args.only is not None:
                break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{number} rounds, {ended.total()} commands, {faults} faults, peak {peak:.0f} MB")
    print(", ".join(f"{name}: {count}" for name, count in sorted(ended.items())))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
