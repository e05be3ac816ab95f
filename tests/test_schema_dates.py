"""Dates in every format, with gaps and time zones."""

import pandas as pd
import pytest

from dafh.tables.schema import TableSchema
from tables import guessed

WRITTEN = {
    "ISO8601": "{0.year}-{0.month:02d}-{0.day:02d}",
    "%d.%m.%Y": "{0.day}.{0.month}.{0.year}",
    "%m/%d/%Y": "{0.month:02d}/{0.day:02d}/{0.year}",
    "%d/%m/%Y": "{0.day:02d}/{0.month:02d}/{0.year}",
}
DATES = pd.Series(pd.date_range("1999-12-01", periods=60, freq="11D"))


@pytest.mark.parametrize("form", WRITTEN)
def test_dates_are_known_in_every_format(form):
    schema, table = guessed(d=DATES.map(WRITTEN[form].format))
    assert schema.features == {"d": f"date {form}"}
    assert (schema.features_of(table)["d"] == DATES).all()


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("gap", ["", "?", "NULL", "unknown", "0000-00-00", "00/00/0000", "00.00.0000"])
def test_gaps_among_dates_are_gaps_in_all_formats(form, gap):
    texts = DATES.map(WRITTEN[form].format)
    schema, table = guessed(d=[gap, *texts[1:]])
    assert schema.features == {"d": f"date {form}"}
    assert schema.features_of(table)["d"].isna().tolist() == [True] + [False] * 59


@pytest.mark.parametrize(
    "text",
    ["2020-06-01T10:00:00Z", "2020-06-01 12:00:00+02:00", "2020-06-01T06:00-04:00", "2020-06-01 10:00:00.000000"],
)
def test_instants_are_the_same_in_every_time_zone(text):
    schema = TableSchema("y", {"d": "date ISO8601"})
    assert schema.features_of(pd.DataFrame({"d": [text]}))["d"].iloc[0] == pd.Timestamp("2020-06-01 10:00")


@pytest.mark.parametrize("text", ["{0.year}/{0.month}/{0.day}", "{0.year}/{0.month:02d}/{0.day:02d}"])
def test_slashes_may_part_a_date_that_begins_with_the_year(text):
    schema, table = guessed(d=DATES.map(text.format))
    assert (schema.features_of(table)["d"] == DATES).all()


def test_dates_that_do_not_exist_are_no_dates():
    assert guessed(d=["2020-02-30", "2020-01-01"] * 20)[0].features == {"d": "category"}
