"""Jobs that share a GPU: which of them may, which of them do, and what they do to each other.

A job's *fraction* is its speed while it shares over its speed alone on the same GPU. One file for each idea:

* `rules` and `grouping`: which jobs may share a GPU, and what each keeps of its speed;
* `pairing` and `combinations`: which jobs share in a round, by the order of the queue or by the allocation matrix;
* `kinds`: for the matrix, what the jobs of all pairs keep, of very many jobs at once;
* `group`: the jobs of one GPU as one job of the planner;
* `delta`: the speedup of sharing (co-location thesis, equation 4.1).

`predictors` tell fractions from what each job does alone: `sums` is the linear predictor of the thesis, `effects` is
ours. `evaluation` judges them on families of models that they have not seen.
"""
