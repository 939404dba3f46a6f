"""What the agent tells of its device."""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version

import numpy as np

from edgeflare_agent import identity
from edgeflare_agent.telemetry import rss_bytes


def test_the_device_is_described_as_json() -> None:
    device = json.loads(json.dumps(identity.device()))
    assert device["arch"] == platform.machine()
    assert device["hostname"] == platform.node()
    assert device["cores"] == os.cpu_count()
    assert device["memory_bytes"] > 2**26
    assert device["cpu_flags"] == sorted(set(device["cpu_flags"]))
    assert platform.release() in device["kernel"]


def test_runtimes_are_found_without_importing_them() -> None:
    code = (
        "import json, sys; from edgeflare_agent import identity; found = identity.runtimes();"
        "print(json.dumps([found, sorted(sys.modules)]))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=environment
    )
    found, modules = json.loads(done.stdout)
    assert found["onnxruntime"] == version("onnxruntime")
    assert found["ai-edge-litert"] == version("ai-edge-litert")
    assert not {"onnxruntime", "ai_edge_litert", "tflite_runtime", "numpy"} & set(modules)


def test_a_package_without_metadata_has_an_unknown_version() -> None:
    assert identity.package_version("no-such-package-here") == ("no-such-package-here", "unknown")


def test_resident_memory_grows_with_what_is_touched() -> None:
    before = rss_bytes()
    held = np.ones(64 << 20, np.uint8)
    after = rss_bytes()
    assert before is not None
    assert after is not None
    assert after - before > 32 << 20
    assert held[0] == 1
