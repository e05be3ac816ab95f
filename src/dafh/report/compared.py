"""What the page about a change of model says, as one dictionary of plain values."""

from collections.abc import Sequence
from typing import Any

import dafh
from dafh.evaluation.compare import Comparison
from dafh.text import plain

_SIGNS = {"harm": "✖", "unchanged": "○", "better": "✔", "undecided": "◆", "different": "◆"}
# Classes of the box at the top, whose colours the other pages share.
_TONES = {"harm": "harm", "unchanged": "unchanged", "better": "no_harm", "undecided": "undecided"}
_VERDICTS = {"loses": "violated", "gains": "satisfied", "not worse": "satisfied", "undecided": "undecided"}


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
    drawn = result.to_frame().rename(columns={"gain": "gap"})
    drawn = drawn.assign(verdict=drawn["answer"].map(_VERDICTS), n=drawn["tested"])
    drawn = drawn[(drawn["kind"] != "everybody") & (drawn["loss"] == drawn["loss"].iloc[0])]
    summary = {
        "title": title,
        "dafh": dafh.__version__,
        "notes": list(notes),
        "comparison": result.to_dict(),
        "tone": _TONES.get(result.status, "undecided"),
        "sign": _SIGNS[result.status],
        "parts": [
            {"title": name.rstrip(":"), "columns": list(table.columns), "rows": table.to_numpy().tolist()}
            for name, table in result.parts()
        ],
        "drawn": {
            kind: [plain(row) for row in drawn[drawn["kind"] == kind].sort_values("gap").to_dict("records")]
            for kind in ("discovered", "named")
        },
    }
    return dict(plain(summary))
