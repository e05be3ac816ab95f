"""Everything dafh raises or warns about on purpose.

::

    DAFHError
    ├── InputError (ValueError)             data or settings that cannot be used
    └── DataNotFoundError (OSError)         a data set that is not here and cannot be fetched
    DAFHWarning (UserWarning)
    ├── GroupsEncodeLabelWarning            the groups are little more than the predicted label
    ├── WorseServedWarning                  sensitive groups do worse than with the pooled classifier
    ├── EffectsLeftOutWarning               a table has more effects than a scorecard takes
    ├── FittedOnSampleWarning               a network or a pooled classifier has seen a sample only
    ├── SuspiciousInputWarning              data that can be used, and probably mean something else
    └── OtherVersionWarning                 a model file comes from other versions of the libraries

Scikit-learn's own exceptions (``NotFittedError``, its parameter and shape errors) pass through unchanged.
"""


class DAFHError(Exception):
    """Base of all errors raised by dafh."""


class InputError(DAFHError, ValueError):
    """The data or the settings cannot be used; the message says what to change."""


class DataNotFoundError(DAFHError, OSError):
    """A raw data file is not here and no source could supply it; the message names the ways to supply it."""


class DAFHWarning(UserWarning):
    """Base of all warnings issued by dafh."""


class GroupsEncodeLabelWarning(DAFHWarning):
    """The learned groups are little more than the predicted labels.

    Knowing a row's group is then nearly the same as knowing its prediction. That each group is served well says no more
    than that most predictions are right.
    """


class WorseServedWarning(DAFHWarning):
    """Groups of the sensitive features do worse with the fitted model than with the pooled classifier."""


class EffectsLeftOutWarning(DAFHWarning):
    """A table has more effects that are worth a coefficient than a scorecard takes; the weaker ones are left out."""


class FittedOnSampleWarning(DAFHWarning):
    """A network, or a pooled classifier that came unfitted, has seen a sample of the rows only."""


class SuspiciousInputWarning(DAFHWarning):
    """The data can be used, but probably mean something else than they say: numbers as text, a label in one row."""


class OtherVersionWarning(DAFHWarning):
    """A model file was written with other versions of the libraries than it is read with."""
