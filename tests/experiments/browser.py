"""Opening a report in headless Chromium, with the command line alone."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARTEFACTS = Path(__file__).parents[2] / "build" / "screenshots"
# Chromium makes a sandbox of its own, which containers refuse to root.
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,14000")
OFFLINE = ("--host-resolver-rules=MAP * ~NOTFOUND", "--disable-component-update", "--no-first-run")
# Notes what went wrong, and when all is loaded the natural width of every image and how wide the page is.
PROBE = """<script>
const errors = [];
window.onerror = (message) => errors.push(String(message));
window.addEventListener("error", (event) => errors.push("not loaded: " + event.target.tagName), true);
window.addEventListener("load", () => {
  const images = [...document.images].map((image) => [image.id, image.naturalWidth]);
  const width = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  document.documentElement.dataset.probe = JSON.stringify({errors, images, overflow: width});
});
</script>"""


@dataclass(frozen=True)
class Opened:
    """What the browser says about a page: errors, widths of the images by id, pixels that stick out to the right."""

    errors: list[str]
    images: dict[str, int]
    overflow: int
    screenshot: Path


def opened(report: Path, name: str, folder: Path) -> Opened:
    """Load a report without a network; a screenshot is kept under build/screenshots."""
    if BROWSER is None:
        pytest.skip("no Chromium is installed (CONTRIBUTING.md says how)")
    text = report.read_text(encoding="utf-8")
    assert "<script" not in text
    probed = folder / "probed.html"
    probed.write_text(text.replace("<head>", "<head>" + PROBE, 1), encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    dumped = _run(BROWSER, *OPTIONS, *OFFLINE, profile, "--enable-logging=stderr", "--dump-dom", probed.as_uri())
    found = re.search(r'data-probe="([^"]*)"', dumped.stdout)
    assert found, dumped.stderr
    probe = json.loads(unescape(found[1]))
    console = [line for line in dumped.stderr.splitlines() if "CONSOLE" in line]
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    screenshot = ARTEFACTS / f"{name}.png"
    _run(BROWSER, *OPTIONS, *OFFLINE, profile, f"--screenshot={screenshot}", report.as_uri())
    return Opened(probe["errors"] + console, dict(probe["images"]), probe["overflow"], screenshot)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
