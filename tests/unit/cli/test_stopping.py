"""Ctrl-C and SIGTERM, once, twice and three times, in a process of its own."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from command import ROOT, environment

from edgeflare import StoreError
from edgeflare.cli.terminal import handling_signals

CAMPAIGN = """
import sys, time, typer
from edgeflare.cli.terminal import handling_signals, with_exit_codes

def campaign() -> None:
    with handling_signals():
        try:
            print("searching", flush=True)
            time.sleep(60)
        finally:
            print("writing", flush=True)
            for line in sys.stdin:
                print(f"wrote {line.strip()}", flush=True)

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(with_exit_codes(campaign))
app()
"""


@pytest.fixture
def signals() -> Iterator[None]:
    """What this process does on signals, as before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, action in before.items():
        signal.signal(number, action)


@pytest.fixture
def campaign(tmp_path) -> Iterator[subprocess.Popen]:
    with subprocess.Popen(
        [sys.executable, "-c", CAMPAIGN],
        env=environment(tmp_path),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "searching\n"
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_one_ends_in_good_order(campaign, number):
    campaign.send_signal(number)
    assert campaign.stdout.readline() == "writing\n"
    out, err = campaign.communicate("a\nb\n", timeout=120)
    assert (campaign.returncode, out, err) == (
        130,
        "wrote a\nwrote b\n",
        "edgeflare: interrupted\n",
    )


def test_the_second_one_interrupts_no_writing(campaign):
    campaign.send_signal(signal.SIGINT)
    assert campaign.stdout.readline() == "writing\n"
    campaign.send_signal(signal.SIGINT)
    assert campaign.stderr.readline() == "\n"
    assert "is being written" in campaign.stderr.readline()
    out, err = campaign.communicate("a\nb\n", timeout=120)
    assert (campaign.returncode, out, err) == (
        130,
        "wrote a\nwrote b\n",
        "edgeflare: interrupted\n",
    )


def test_the_third_one_ends_at_once_without_a_traceback(campaign):
    campaign.send_signal(signal.SIGTERM)
    assert campaign.stdout.readline() == "writing\n"
    campaign.send_signal(signal.SIGINT)
    assert campaign.stderr.readline() == "\n"
    campaign.send_signal(signal.SIGINT)
    assert campaign.wait(timeout=120) == 130
    assert "Traceback" not in campaign.stderr.read()


@pytest.mark.parametrize("kept_by", ["a program", "a library"])
def test_what_does_not_end_is_given_up(tmp_path, kept_by):
    """A library's code doesn't let the main thread take the signal at all."""
    keeps = {
        "a program": "while True:\n            try: say(); time.sleep(60)\n            except KeyboardInterrupt: pass",
        "a library": "lock, library = ctypes.create_string_buffer(64), ctypes.CDLL(None)\n        while True:\n"
        "            try: say(); library.pthread_mutex_lock(lock); library.pthread_mutex_lock(lock)\n"
        "            except KeyboardInterrupt: pass  # of a signal that came before the library was entered",
    }
    code = f"""
import ctypes, time
from edgeflare.cli.terminal import handling_signals

def say():
    print("searching", flush=True)

def forever():
    with handling_signals(grace_s=0.2):
        {keeps[kept_by]}

forever()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "searching\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "found is kept" in err
    assert "Traceback" not in err


def test_without_an_interrupt_the_signals_are_as_before():
    from edgeflare.cli.terminal import handling_signals

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with handling_signals() as stop:
        assert signal.getsignal(signal.SIGTERM) == stop.take
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert not stop.asked


def test_what_nohup_ignores_stays_ignored():
    from edgeflare.cli.terminal import handling_signals

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with handling_signals():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def torn(number: signal.Signals | None) -> None:
    """A block that a signal ends, where something fails in turn."""
    with handling_signals(grace_s=3600):
        try:
            if number is not None:
                signal.raise_signal(number)
        finally:
            raise StoreError("the transaction was torn")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_error_that_the_signal_made_is_an_interruption_all_the_same(signals, number):
    with pytest.raises(KeyboardInterrupt) as ended:
        torn(number)
    assert isinstance(ended.value.__cause__, StoreError)


def test_an_error_of_its_own_stays_one():
    with pytest.raises(StoreError, match="torn"):
        torn(None)


def test_one_that_python_drops_in_a_callback_is_taken_again(signals):
    class Freed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def work():
        with handling_signals(grace_s=3600):  # else this process ends with it
            Freed()
            time.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        work()
