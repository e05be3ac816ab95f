"""The short list of kinds that are built from a file; everything else is foreign."""

from dafh.models.classifier_kinds import CLASSIFIER_KINDS
from dafh.models.description import Kind
from dafh.models.encoder_kind import ENCODER_KINDS
from dafh.models.estimator_kinds import ESTIMATOR_KINDS
from dafh.models.incumbent_kinds import INCUMBENT_KINDS
from dafh.models.partition_kinds import PARTITION_KINDS
from dafh.models.scorecard_kind import SCORECARD_KINDS

KINDS: tuple[Kind, ...] = (
    *CLASSIFIER_KINDS,
    *SCORECARD_KINDS,
    *ENCODER_KINDS,
    *INCUMBENT_KINDS,
    *PARTITION_KINDS,
    *ESTIMATOR_KINDS,
)
