"""Makes a fixture of the present schema: ``python build_earlier.py schema-5`` writes the folder of that name beside it.

A small campaign of the demo's models, and a corpus of it and of its replay; `expected.json` is what `show`
says of them. The models' paths become /home/user/mnist, the device's Python python3.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DEMO = HERE.parents[2] / "host" / "edgeflare" / "assets" / "demo"
PLACE = "/home/user/mnist"
SHOWN = "campaign created_at seeds finished unfinished searched found by_status total_queries label_pairs"
CORPUS_SHOWN = (
    "id created_at per_pair shape classes entries seeds campaigns sightings pairs models targets"
)
COLUMNS = (("campaign", "config"), ("campaign", "models"), ("facts", "value"), ("notices", "text"))


def edgeflare(*arguments: object, folder: Path) -> Any:
    words = [sys.executable, "-m", "edgeflare.cli", *map(str, arguments), "--json"]
    done = subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main(name: str) -> None:
    made = Path(tempfile.mkdtemp())
    models = ("--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite")
    what = (*models, "--seeds", DEMO / "seeds.npz", "--limit", 6, "--max-queries", 5000)
    edgeflare("run", *what, "--out", "campaign", folder=made)
    edgeflare("replay", "campaign", "--out", "replay", folder=made)
    edgeflare("corpus", "add", "corpus", "campaign", "replay", folder=made)
    shown = edgeflare("show", "campaign", folder=made)
    corpus = edgeflare("corpus", "show", "corpus", folder=made)
    database = sqlite3.connect(made / "campaign" / "campaign.sqlite", isolation_level=None)
    for table, column in COLUMNS:
        for there, here in ((DEMO, PLACE), (made, PLACE), (sys.executable, "python3")):
            change = f"update {table} set {column} = replace({column}, ?, ?)"
            database.execute(f"{change} where typeof({column}) = 'text'", (str(there), str(here)))
    triggers = dict(
        database.execute(
            "select seeds.id, outcomes.sample_digest from outcomes join seeds on seeds.position = seed"
        )
    )
    database.execute("vacuum")
    database.close()
    for kind in ("campaign", "corpus"):
        ignored = shutil.ignore_patterns("*.lock", "live.json")
        shutil.copytree(made / kind, HERE / name / kind, ignore=ignored)
    expected = {
        "triggers": triggers,
        "show": {key: shown[key] for key in SHOWN.split()},
        "corpus": {key: corpus[key] for key in CORPUS_SHOWN.split()},
    }
    (HERE / name / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    shutil.rmtree(made)


if __name__ == "__main__":
    main(sys.argv[1])
