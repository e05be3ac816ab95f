"""Parts of a report's page, and a model card for one."""

import html
import json
import re


def section(page, name):
    """The part of a page with this heading, or this entry of its appendix, or nothing."""
    found = re.search(rf'<section aria-labelledby="h-{name}">(.*?)</section>', page, flags=re.S)
    found = found or re.search(
        rf'<details class="entry[^"]*" id="{name}">(.*?)</details>\s*(?:<details class="entry|</section>)',
        page,
        flags=re.S,
    )
    return found and html.unescape(found[1])


def cards(page):
    """The groups of a page: heading, figure and facts of each card."""
    articles = re.findall(r'<article class="group[^"]*"[^>]*>(.*?)</article>', page, flags=re.S)
    return [
        [html.unescape(text).strip() for text in re.findall(r">([^<>]+)<", article) if text.strip()]
        for article in articles
    ]


def table(page, caption):
    """A table of a page by its caption: a list of dictionaries."""
    body = re.search(rf"<caption>{caption}[^<]*</caption>(.*?)</table>", page, flags=re.S)[1].replace("\u00a0", " ")
    lines = re.findall(r"<tr[^>]*>(.*?)</tr>", body, flags=re.S)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in lines]
    return [dict(zip(rows[0], map(html.unescape, row), strict=True)) for row in rows[1:]]


def chart(page, name):
    return json.loads(re.search(rf'id="spec-{name}">(.*?)</script>', page, flags=re.S)[1])


CARD = {
    "model": "DAFHClassifier", "groups": 2, "pooled": "LogisticRegression", "labels": ["no", "yes"], "settings": {},
    "rows": 12_345, "data": "adult.csv", "written": "2026-01-02", "dafh": "0.1", "versions": {"numpy": "2.1"},
    "columns": [{"name": "age", "type": "number"}],
}  # fmt: skip
NASTY = '<img src=x onerror="window.hacked=1">\'"&</script><script>window.hacked=1</script>=cmd() 🦊'
