"""Fake models and devices, and links and agents with faults, as EdgeFlare's own tests use.

A `FaultPlan` says what goes wrong on a device's streams, from a seed or by hand; wrap the device's
transport in it and every run meets the same faults. A `Relay` stands between a client and a server
and makes the connection slow, narrow, silent or cut::

    from edgeflare.devices import connect, open_device
    from edgeflare_lab.testing import FaultPlan, connecting

    plan = FaultPlan(seed=7)
    session = open_device(device, model, connect=connecting({device.name: plan}, connect))
    ...
    print(plan)  # what was to happen, and what did

A `FakeAgent` stands in for the agent itself and answers nonsense wherever a `Replace` says so;
`connecting` takes one in place of a plan. A `FakeModel` is a small classifier, and `run_strategy`
searches with a strategy and two of them, without a device; `FakeModel.device` is a device that
answers with it::

    model = FakeModel.random((8, 8, 1), classes=4)
    run = run_strategy(MyStrategy(), image, original=model, deployed=model.quantised())
    assert run.outcome.sample is not None
    assert run.queries < 100
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
