"""What models predict and what commands say is what is kept; `record.py` says how to keep a change."""

import pytest

from golden import record

# Every kind of column and option once; a network is in the one with weights, and proof in the one with dates.
FAST = {"weights", "persons", "classes", "dates", "gaps", "incumbent", "costs"}


@pytest.mark.filterwarnings("always::dafh.exceptions.GroupsEncodeLabelWarning")
@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param(name, make, id=name, marks=() if name in FAST else pytest.mark.slow)
        for name, make in record.worlds()
    ],
)
def test_a_table_gets_the_kept_predictions_audit_and_words(name, make):
    world = make()
    if world is None:
        pytest.skip("no raw data: set DAFH_DATA")
    assert "\n".join(record.differences(name, record.record(world))) == ""


def test_every_command_has_the_kept_help():
    assert "\n".join(record.different_words("help", record.help_texts())) == ""
