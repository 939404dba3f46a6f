"""A strategy, an oracle, a runtime and a transport of the user's, each from an installed distribution."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from plugin_distributions import RUNTIME_ENTRIES, RUNTIME_SOURCE, write_distribution

import edgeflare
from edgeflare.answers.oracles import oracle_for
from edgeflare.campaign import demo_config
from edgeflare.devices import LOCAL, connect
from edgeflare.devices.provisioning.upload import agent_bundle
from edgeflare.store import Store
from edgeflare.strategies import build_strategy, strategy_names

DEMO = demo_config()
SOURCE = '''
from dataclasses import dataclass

import numpy as np

from edgeflare import Ask, Decision, Outcome
from edgeflare.devices import LOCAL, connect


@dataclass(frozen=True)
class Noise:
    """Uniform noise of growing size."""

    tries: int = 60

    def __call__(self, seed, rng):
        for size in range(1, self.tries + 1):
            noise = rng.integers(-4 * size, 4 * size, seed.sample.shape, endpoint=True)
            sample = np.clip(seed.sample + noise, 0, 255).astype(np.uint8)
            answer = yield Ask([sample])
            if answer.outputs[0].decision is Decision.DEVIATION:
                return Outcome(sample)
        return Outcome(None, reason="the noise is as loud as it gets")


def nothing(seed, rng):
    yield from ()
    return Outcome(None)


class Sixths:
    """Deviates where any class's probability differs by a sixth."""

    compares_scores = True
    deviation = "a class's probability differs by {1/6}"

    def __init__(self, floor):
        self.floor = floor

    def decide(self, original, deployed):
        apart = np.abs(original - deployed).max() > 1 / 6
        return Decision.DEVIATION if apart else Decision.AGREE


def pipe(device, ask):
    assert device.url == "pipe://here"
    return connect(LOCAL.model_copy(update={"name": device.name}))


class Useless:
    pass


number = 7
'''
ENTRIES = {
    "edgeflare.strategies/noise": "Noise", "edgeflare.strategies/nothing": "nothing",
    "edgeflare.strategies/useless": "Useless", "edgeflare.oracles/sixths": "Sixths",
    "edgeflare.oracles/useless": "Useless", "edgeflare.transports/pipe": "pipe",
    "edgeflare.transports/useless": "number", "edgeflare.runtimes/useless": "Useless",
}  # fmt: skip
GROUPS = ("strategies", "oracles", "transports", "runtimes")


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    sites = [tmp_path_factory.mktemp(name) for name in ("plugins", "mine", "broken")]
    write_distribution(sites[0], "the_plugins", SOURCE, ENTRIES)
    write_distribution(sites[1], "mine_runtime", RUNTIME_SOURCE, RUNTIME_ENTRIES, "mine")
    broken = {f"edgeflare.{group}/broken": "Thing" for group in GROUPS}
    write_distribution(sites[2], "broken_plugins", "import no_such_library", broken, "broken")
    with pytest.MonkeyPatch.context() as patch:
        for site in sites:
            patch.syspath_prepend(site)
        yield


def search(**changes: object) -> edgeflare.SearchResult:
    seeds = {"path": DEMO.seeds.path, "limit": 2}
    given = {"original": DEMO.original.path, "deployed": DEMO.deployed.path, "seeds": seeds}
    fixed = {"margin_floor": 0, "survey": {"enabled": False}}
    return edgeflare.search(**{**given, **fixed, **changes})


def test_a_strategy_of_ones_own_is_chosen_by_its_name_with_its_options() -> None:
    assert {"noise", "nothing"} < set(strategy_names())
    result = search(strategy="noise", options={"tries": 90})
    found = list(result.triggers)
    assert found
    with Store.open(result.folder) as store:
        assert store.environment["strategy noise"] == "my-plugins 1.2"
    for trigger in found:
        assert trigger.original_label != trigger.deployed_label
    assert list(search(strategy="nothing").triggers) == []


@pytest.mark.parametrize(
    ("name", "options", "operators", "words"),
    [
        ("noise", {"trise": 3}, (), "option 'trise'"),
        ("noise", {"tries": "many"}, (), "option 'tries'"),
        ("nothing", {"tries": 3}, (), "option 'tries'"),
        ("noise", {}, ("gaussian-noise",), "operators itself"),
    ],
)
def test_its_options_are_checked_as_those_of_built_in_ones(name, options, operators, words) -> None:
    with pytest.raises(edgeflare.UsageError, match=words):
        build_strategy(name, options, operators)


def test_an_oracle_of_ones_own_decides() -> None:
    for trigger in search(oracle="sixths", strategy="noise", options={"tries": 90}).triggers:
        assert abs(trigger.original - trigger.deployed).max() > 1 / 6


def test_an_oracle_of_ones_own_states_what_strategies_and_reports_need() -> None:
    result = search(oracle="sixths", strategy="dflare", max_queries=300)
    report = edgeflare.report_text(result.folder, "markdown")
    assert "differs by {1/6}" in report
    assert ", scores 0." in report
    with pytest.raises(edgeflare.UsageError, match='"sixths"'):
        search(oracle="sixths", strategy="gradient")
    with pytest.raises(edgeflare.UsageError, match="oracle compares"):
        oracle_for("sixths", {}, task="classification", labels_only=True)


def test_a_transport_and_a_runtime_of_ones_own_reach_the_device_and_run_there(tmp_path) -> None:
    model = shutil.copy(DEMO.original.path, tmp_path / "lenet.mine")
    inventory = tmp_path / "devices.toml"
    inventory.write_text(
        f'[devices.board]\ntransport = "pipe"\nurl = "pipe://here"\ncache = "{tmp_path / "cache"}"\n'
    )
    result = search(
        original=model, deployed=model, device="board", inventory=inventory, strategy="noise"
    )
    models = edgeflare.summarize(result.folder).models
    assert [models[one]["runtime"]["name"] for one in ("original", "deployed")] == ["mine", "mine"]
    assert {device["name"] for device in edgeflare.summarize(result.folder).devices} == {"board"}


def test_a_device_is_named_by_the_url_of_a_transport_of_ones_own() -> None:
    device = edgeflare.resolve_device("pipe://here", {})
    assert (device.name, device.transport, device.address) == ("pipe://here", "pipe", "pipe://here")
    with pytest.raises(edgeflare.UsageError, match="called 'pipes://here'"):
        edgeflare.resolve_device("pipes://here", {})
    with pytest.raises(ValueError, match="`url` must"):
        edgeflare.Device(name="board", transport="pipe", url="ssh://here")
    with pytest.raises(ValueError, match="`url` has"):
        edgeflare.Device(name="board", host="board", url="pipe://here")


def test_a_users_runtime_is_part_of_the_agents_hash_where_it_is_used(tmp_path: Path) -> None:
    plain, other, mine = (agent_bundle(tmp_path, names) for names in ([], ["onnx"], ["mine"]))
    assert plain == other != mine
    assert mine.read_bytes().count(b"class MineRuntime") == 1


def test_a_plugin_that_is_broken_is_named_when_it_is_used_and_harms_no_other(tmp_path) -> None:
    model = tmp_path / "model.odd"
    model.write_bytes(b"")
    uses: dict[str, Callable[[str], object]] = {
        "strategy": lambda name: build_strategy(name, {}),
        "oracle": lambda name: oracle_for(name, {}, task="classification"),
        "runtime": lambda name: edgeflare.open_device(LOCAL, model, runtime=name),
        "transport": lambda name: connect(edgeflare.resolve_device(f"{name}://here", {})),
    }
    for kind, use in uses.items():
        with pytest.raises(edgeflare.UsageError, match=f"{kind} 'broken'"):
            use("broken")
        with pytest.raises(edgeflare.EdgeFlareError, match=f"{kind} 'useless'"):
            use("useless")
    with pytest.raises(edgeflare.UsageError, match="runtime 'broken'"):
        edgeflare.open_device(LOCAL, model)
