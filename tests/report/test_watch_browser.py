"""The page about a model in use, in a real browser; skipped without Chromium."""

import shutil

import numpy as np
import pandas as pd
import pytest

from command_line import run
from pages import NASTY
from watched import watch, watched_folder


@pytest.fixture(scope="module")
def page(tmp_path_factory, browser):
    """The page of seven batches, with an alarm, a change of service, drift, rows that wait, and names like markup."""
    folder = tmp_path_factory.mktemp("page")
    model, state, out = folder / "model.dafh", folder / "watch.db", folder / "watch.html"
    shutil.copy(watched_folder() / "model.dafh", model)
    for month in range(1, 8):
        table = pd.read_csv(watched_folder() / f"{month}.csv")
        table.loc[table.index < 40 * month, "hours"] = np.nan
        table.loc[table.index < 10 * month, "sex"] = NASTY
        table.loc[table.index < 50 * (month == 7), "hired"] = None
        table.to_csv(folder / "month.csv", index=False)
        assert watch(state, folder / "month.csv", "--name", f"{NASTY} {month}", "--apply", model=model).exit_code == 0
    assert run("watch", "report", state, "--out", out, "--title", NASTY).exit_code == 0
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    opened, seen = context.new_page(), []
    opened.on("request", lambda request: seen.append(request.url))
    opened.on("console", lambda message: seen.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: seen.append(str(error)))
    opened.goto(out.as_uri())
    drawn = "document.querySelectorAll('.chart').length === document.querySelectorAll('[data-drawn]').length"
    opened.wait_for_function(drawn)
    yield opened, [text for text in seen if text != out.as_uri()]
    context.close()


def test_it_opens_without_an_error_and_without_the_network(page):
    opened, seen = page
    assert seen == []
    assert opened.evaluate("window.hacked") is None
    assert opened.title() == NASTY


def test_every_chart_is_drawn_and_none_is_wider_than_the_page(page):
    opened, _ = page
    names = {chart.get_attribute("data-chart") for chart in opened.locator(".chart").all()}
    assert names == {"evidence", "gain_0", "gain_1", "groups", "inputs"}
    for chart in opened.locator(".chart").all():
        assert chart.locator("svg .mark-line path, svg .mark-area path").count() > 0
        assert 200 < chart.locator("svg").bounding_box()["width"] <= 1200


def test_the_verdict_alarms_and_changes_are_there_to_read(page):
    opened, _ = page
    assert opened.locator("h1").inner_text().startswith("Acted upon: ")
    assert "50 rows wait for their labels." in opened.locator("header").inner_text()
    said = opened.locator("section[aria-labelledby=h-notices]").inner_text()
    assert "is worse off than with the pooled classifier, in error rate" in said
    assert "hours missing:" in said
    assert "harm was shown at row" in opened.locator("section[aria-labelledby=h-service]").inner_text()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_nothing_serious(page, browser, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    opened = context.new_page()
    opened.goto(page[0].url)
    violations = axe.Axe().run(opened).response["violations"]
    assert [v["id"] for v in violations if v["impact"] in ("serious", "critical")] == []
    context.close()


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_but_tables_scrolls_sideways(page, width):
    opened, _ = page
    opened.set_viewport_size({"width": width, "height": 900})
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
