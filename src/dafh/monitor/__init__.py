"""Monitoring over time: is any group worse off than with the pooled classifier, now that the model is in use.

- `monitor`: `Monitor`, which takes batches of rows and says what they show;
- `settings`: its parameters, and the subgroups that are watched;
- `ledger`: its books: rows that have counted, rows that wait for labels, and all that was shown;
- `evidence`: what labelled rows say about every group, declared subgroup and loss;
- `levels`: the error and the probabilities of the model in use by itself;
- `inputs`: shares of groups, missing values, unseen categories and numbers against the training data;
- `notices`: alarms, proofs, warnings of shocks, what an update has changed, and the table for readers;
- `service`: who serves whom after an alarm or a proof;
- `store`: the books in a file that survives a kill.

A new kind of evidence belongs in `dafh.stats`, with a simulation of its level; `evidence` then asks it.
"""
