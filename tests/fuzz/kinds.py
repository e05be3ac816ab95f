"""All kinds of cases."""

from fuzz.calls import CALLS_KIND
from fuzz.cases import Kind
from fuzz.exports import EXPORTS
from fuzz.states import STATES
from fuzz.tables import TABLES

KINDS: dict[str, Kind] = {kind.name: kind for kind in (TABLES, STATES, EXPORTS, CALLS_KIND)}
