"""How well each group is served, by which classifier, and what the rows can show about it.

- `losses`: error, false positive rate, false negative rate and costs, as what is at stake on each row;
- `compared`: predictions reduced to which classifier is right on which row, and the harm on each row, from which all
  tests of groups are made;
- `matrix`: the preference matrix, the numbers of the paper, and its Theorems 1 and 2 for a fitted model;
- `named_groups`: groups defined by sensitive attributes, and their intersections;
- `questions`: test, interval and answer for each question, and the figures that need no answer;
- `audit`: all answers together, and the tables that people see;
- `recommendation`: the verdict: for which groups the rows support their own classifiers, and what to do;
- `discovery`: groups that nobody has named, found on one half of the rows and tested on the other; and one limit of
  harm for all groups that two conditions describe;
- `decisions`: labels, scores or models as decisions about the same rows;
- `compare`: who loses from a change of model;
- `failures`: whom one model fails;
- `guard`: which classifier serves which group, and why.

A new metric belongs in `matrix`, a new question in `questions`, and a new loss in `losses`: what a wrong decision costs
on each row is all that tests, guard and audit need to know about it.
"""
