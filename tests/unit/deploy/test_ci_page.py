"""The workflows in docs/how-to/limits-and-ci.md fit the schemas of GitHub and GitLab."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT

PAGE = ROOT / "docs" / "how-to" / "limits-and-ci.md"
SCHEMAS = {".github/workflows/edgeflare.yml": "github-workflows", ".gitlab-ci.yml": "gitlab-ci"}


@pytest.mark.parametrize(("name", "schema"), SCHEMAS.items())
def test_a_workflow_fits_its_schema(name: str, schema: str, tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = dict(re.findall(r"<!-- test: file (\S+) -->\n```yaml\n(.*?)```", text, re.DOTALL))
    path = tmp_path / "workflow.yml"
    path.write_text(found[name], encoding="utf-8")
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*check, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
