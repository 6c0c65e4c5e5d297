"""A program is submitted by the page: the editor finds a mistake, the job shows its curve, a stop and a resume."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RunningStudio
from tests.waiting import PROCESS_S, wait_until

PROGRAM = """import sys, threading
import numpy as np
from ziggurat.backends.null import NullProgram
from ziggurat.callbacks import Callback, Trainer


class Slow(Callback):
    def trigger_step(self):
        threading.Event().wait(float(sys.argv[2]))


x = np.random.random((64, 8)).astype(np.float32)
y = (x.sum(1) > 4).astype(np.int64)
batches = [[x[i : i + 8], y[i : i + 8]] for i in range(0, 64, 8)]
print("it begins")
Trainer(NullProgram(8, 2), batches, callbacks=[Slow()]).train(int(sys.argv[1]))
"""


def job_of(page: Page) -> str:
    """Return the id of the job that the page shows."""
    page.wait_for_url("**/jobs/2*")
    return page.url.rpartition("/")[2]


def fits(page: Page) -> None:
    """Check that nothing is wider than a small screen."""
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.nightly
def test_an_uploaded_program_shows_its_curve(server: RunningStudio, page: Page, check_page: Any) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("project/main.py", PROGRAM)
        archive.writestr("project/notes.md", "# Notes\n")
    page.goto(server.address)
    page.locator("#new-program, #first-new-program").first.click()  # an empty studio has its first screen
    expect(page.locator("h1")).to_have_text("New program")
    check_page(page)
    fits(page)
    page.set_input_files("#file", {"name": "project.zip", "mimeType": "application/zip", "buffer": target.getvalue()})
    page.fill("#arguments", "100000 0.005")
    page.fill("#name", "by the page")
    page.click("#submit")
    job = job_of(page)
    expect(page.locator("#job-name")).to_have_text("by the page")
    expect(page.locator("#curves canvas").first).to_be_visible()
    expect(page.locator("#job-checkpoints-short tbody tr").first).to_be_visible()
    page.click("#job-stop")
    expect(page.locator("#job-chip")).to_contain_text("stopped")
    step = server.client.job(job)["global_step"]
    assert server.client.checkpoints(job)[-1]["step"] == step
    check_page(page)
    fits(page)

    page.click("#job-resume")
    wait_until(lambda: server.client.job(job)["global_step"] > step, PROCESS_S)
    assert server.client.attempts(job)[-1]["first_step"] == step
    server.client.stop(job)
    wait_until(lambda: server.client.job(job)["state"] == "stopped", PROCESS_S)

    page.click("#tab-program")
    expect(page.locator(".editor .cm-content")).to_contain_text("from ziggurat.callbacks import Callback, Trainer")
    expect(page.locator("main")).to_contain_text("python main.py 100000 0.005")
    check_page(page)
    fits(page)
    page.click("text=notes.md")
    expect(page.locator("#program-text")).to_have_text("# Notes")


def test_a_mistake_is_found_in_the_editor_and_mended(server: RunningStudio, page: Page, check_page: Any) -> None:
    page.goto(f"{server.address}/programs/new")
    page.check("#origin-text", force=True)
    editor = page.locator(".editor .cm-content")
    editor.click()
    page.keyboard.insert_text("x = 1\ny = =")
    expect(page.locator("#code-findings")).to_contain_text("Syntax error: invalid syntax.")
    page.expected.append("422")  # type: ignore[attr-defined]
    page.click("#submit")
    expect(page.locator("#problems")).to_contain_text("program.py, line 2: Syntax error")
    check_page(page)
    fits(page)
    assert not list(server.client.jobs(text="program.py"))
    page.locator(".editor .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("print('hello')")
    expect(page.locator("#code-findings")).to_be_empty()
    page.click("#submit")
    job = job_of(page)
    expect(page.locator("#program-without-curves")).to_be_visible()
    assert "hello" in server.client.log(job)
