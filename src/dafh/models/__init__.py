"""Model files without pickle: plain values and arrays under names of our own.

- `files`: save, load, and the model together with its card;
- `card`: what a file says of its model in plain words;
- `container`: the bytes of a file, their limits and the checksum; a new file format changes `container.FORMAT`;
- `description`: from objects to plain values and back, entry by checked entry;
- `kinds`: the list of what is built from a file. A new kind is a `Kind` in one of `classifier_kinds`,
  `scorecard_kind`, `encoder_kind`, `incumbent_kinds`, `partition_kinds` and `estimator_kinds`, with a
  round trip in the tests and a word in docs/commands.md; if copies of it are to be fitted, its parameters are checked
  in `settings`;
- `binning_kind`, `group_kinds`: bins, views of tables and learned groups, which are parts of an estimator and sized by
  it;
- `settings`, `values`: constructor parameters, labels, columns and tables, which several kinds share;
- `trees`, `layers`: classifiers of scikit-learn that come back as arrays with a `predict` of our own;
- `foreign`: everything else, stored by skops and built only if the reader names its types.

A file that an older version wrote must keep loading: add entries as optional ones (`Fields.has`), or raise the
format.
"""

from dafh.models.files import ModelFile, load, open_model, read_card, save

__all__ = ["ModelFile", "load", "open_model", "read_card", "save"]
