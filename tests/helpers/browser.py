"""Debian's Chromium without a window: opens pages from files, and tells what they asked for and complained of."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
DESKTOP, PHONE = (1280, 900), (390, 844)
SCREENSHOTS = "EDGEFLARE_SCREENSHOTS"
"""Environment variable: the folder in which tests leave their screenshots."""


class Browser:
    """A browser with one page. `log` of the console and of the network since the last `open`."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._requests: list[str] = []

    def open(self, page: Path | str) -> None:
        """Open a file, or an address; what was logged before is forgotten."""
        self.driver.get("about:blank")
        self._drain()
        self._requests.clear()
        self.driver.get(page.absolute().as_uri() if isinstance(page, Path) else page)

    def forget(self) -> None:
        """Forget what pages complained of, and what they keep."""
        self.complaints()
        self._command("Storage.clearDataForOrigin", origin="file://", storageTypes="all")

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns; ``arguments[0]`` is the first argument."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: str, *arguments: Any, seconds: float = 10) -> Any:
        """Wait until a JavaScript expression is true; return its value."""
        from selenium.common.exceptions import TimeoutException
        from selenium.webdriver.support.ui import WebDriverWait

        try:
            return WebDriverWait(self.driver, seconds, poll_frequency=0.02).until(
                lambda _: self.run(f"return {condition}", *arguments)
            )
        except TimeoutException:
            pytest.fail(f"never came true: {condition}")

    def run_until(self, script: str, *arguments: Any) -> None:
        """Run a script after each frame that is drawn until it returns true, for a minute at most."""
        done = self.driver.execute_async_script(
            "const given = [...arguments], told = given.pop(), end = performance.now() + 60000;"
            f"const step = function () {{ {script} }};"
            "const look = () => step(...given) ? told(true) : performance.now() > end ? told(false)"
            " : requestAnimationFrame(() => requestAnimationFrame(look));"
            "look()",
            *arguments,
        )
        if not done:
            pytest.fail(f"never came true: {script}")

    def type(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        actions = ActionChains(self.driver, duration=0)
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    def resize(self, size: tuple[int, int]) -> None:
        """Take a screen of this width and height in CSS pixels; a phone's is one that is touched."""
        width, height = size
        self._command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            screenWidth=width, screenHeight=height, mobile=size == PHONE,
        )  # fmt: skip

    def theme(self, name: Literal["light", "dark"]) -> None:
        """Prefer light or dark pages, as the system's setting does; and ones in which nothing moves."""
        wanted = {"prefers-color-scheme": name, "prefers-reduced-motion": "reduce"}
        features = [{"name": feature, "value": value} for feature, value in wanted.items()]
        self._command("Emulation.setEmulatedMedia", features=features)

    def go_offline(self) -> None:
        """Cut the network off."""
        self._command(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )

    def requests(self) -> list[str]:
        """Return the addresses that the page has asked for since it was opened."""
        self._drain()
        return list(self._requests)

    def complaints(self) -> list[str]:
        """Return the errors and warnings on the console since this was asked last."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]

    def axe(self) -> list[str]:
        """Return axe's serious and critical violations on the page as it is now, one line each."""
        from axe_core_python.base import AXE_SCRIPT

        self.run(AXE_SCRIPT)
        found = self.driver.execute_async_script(
            "axe.run(document, {resultTypes: ['violations']}).then(arguments[0])"
        )
        return [
            f"{one['id']}: {node['target']} {node['failureSummary']}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"][:3]
        ]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the screen."""
        return self.run("return document.documentElement.scrollWidth - screen.width")

    def show(self, element: str, name: str) -> None:
        """Leave a picture of the screen from the element of this id on, where the environment names a folder."""
        folder = os.environ.get(SCREENSHOTS)
        if not folder:
            return
        self.run("document.getElementById(arguments[0]).scrollIntoView()", element)
        self.wait(
            "[...document.images].map(one => [one.complete, one.getBoundingClientRect()])"
            ".every(([complete, at]) => complete || at.bottom <= 0 || at.top >= innerHeight)"
        )
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.driver.get_screenshot_as_file(str(Path(folder) / f"{name}.png"))

    def _command(self, command: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, values)

    def _drain(self) -> None:
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requests.append(message["params"]["request"]["url"])


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser, offline; skip the test where there is none."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    for program in (CHROMIUM, DRIVER):
        if not program.exists():
            pytest.skip(f"{program} is missing: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new",
        "--no-sandbox",  # tests run as root in containers, where its sandbox can't be made
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-color-profile=srgb",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=str(DRIVER))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.execute_cdp_cmd("Network.enable", {})
        opened = Browser(driver)
        opened.go_offline()
        opened.resize(DESKTOP)
        opened.theme("light")
        yield opened
    finally:
        driver.quit()
        shutil.rmtree(driver.capabilities["chrome"]["userDataDir"], ignore_errors=True)


@pytest.fixture(scope="module")
def shared_window() -> Iterator[Browser]:
    """One browser for a module's tests."""
    with browser() as window:
        yield window


@pytest.fixture
def window(shared_window: Browser) -> Browser:
    """The module's browser, as on a desk by day."""
    shared_window.resize(DESKTOP)
    shared_window.theme("light")
    shared_window.forget()
    return shared_window
