"""What the page about a change of model says, as one dictionary of plain values."""

from collections.abc import Sequence
from typing import Any

import dafh
from dafh import plots
from dafh.evaluation.compare import Comparison
from dafh.report.page import page_charts, page_table
from dafh.text import Section, plain

# Signs and colours of the box at the top; pages about a model in use have boxes of the same colours.
_TONES = {
    "harm": ("✖", "harm"),
    "unchanged": ("○", "unchanged"),
    "better": ("✔", "no_harm"),
    "undecided": ("◆", "undecided"),
    "different": ("◆", "undecided"),
}


def summarize_comparison(
    result: Comparison, *, title: str = "Old model, new model", notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Plain values of a comparison, for the page and for programs.

    Examples
    --------
    >>> import numpy as np
    >>> from dafh import compare
    >>> y = np.tile([0, 1], 200)
    >>> summarize_comparison(compare(y, y, 1 - y))["tone"]
    'harm'
    """
    sign, tone = _TONES[result.status]
    kinds = set(result.to_frame()["kind"])
    drawn = {"discovered": plots.gains, "named": plots.named_groups}
    summary = {
        "about": "compared",
        "title": title,
        "dafh": dafh.__version__,
        "notes": list(notes),
        "comparison": result.to_dict(),
        "tone": tone,
        "sign": sign,
        "tables": {
            f"groups_{number}": page_table(Section(heading.rstrip(":"), table=table))
            for number, (heading, table) in enumerate(result.parts())
        },
        "charts": page_charts({kind: draw(result) for kind, draw in drawn.items() if kind in kinds}),
    }
    return dict(plain(summary))
