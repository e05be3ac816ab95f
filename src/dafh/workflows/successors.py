"""The model file that follows another one when a monitor has changed who serves whom."""

import copy
from typing import Any

from dafh.classifiers.pipelines import final_classifier
from dafh.exceptions import InputError
from dafh.explanation.words import worth_of_groups
from dafh.persistence.card import make_card
from dafh.persistence.files import ModelFile, file_content, model_of
from dafh.persistence.state import write_state

_ORIGIN = ("written", "dafh", "python", "versions")
"""Entries of a card that say when and with what a file was written."""


def successor(model: Any, card: dict[str, Any]) -> bytes:
    """Return the file of a model whose service has changed; `card` is that of the file before."""
    return file_content(model, details=_details(model, card))


def is_successor(content: bytes | None, before: ModelFile) -> bool:
    """Whether a file is another one but for who serves whom, with the evidence for it.

    A state may be forged, and its checksums with it. So the file is built, and compared with what `successor` makes of
    the model before, once that serves in the same way: values, arrays and card are the same but for the origin.
    """
    try:
        after = model_of(content or b"")
    except InputError:
        return False
    old, new = copy.deepcopy(before.model), final_classifier(after.model)
    final = final_classifier(old)
    if type(new) is not type(final) or not hasattr(new, "_serve") or new.n_groups_ != final.n_groups_:
        return False
    final._serve(new.guard_report_)
    expected = make_card(old, _details(old, before.card))
    if {**after.card, **{name: expected[name] for name in _ORIGIN}} != expected:
        return False
    written, expected_state = write_state(after.model), write_state(old)
    # Parts of other libraries are never changed, and skops writes the same part with other bytes each time.
    return (written.values, written.arrays) == (expected_state.values, expected_state.arrays)


def _details(model: Any, card: dict[str, Any]) -> dict[str, Any]:
    """What the card before says beyond the model itself, and what the groups are worth now."""
    own = make_card(model, {})
    return {name: value for name, value in card.items() if name not in own} | {"worth": worth_of_groups(model)}
