"""Jobs that share a GPU: what they do to each other, told from what each does alone (co-location thesis, chapter 4).

A job's *fraction* is its speed while it shares over its speed alone on the same GPU. One file for each idea: `delta`
(equation 4.1), `kernels` (4.2, 4.3), `sums` (the thesis' linear predictor), `effects` (ours), `evaluation` (how well
they do on families of models they have not seen).
"""
