"""Tables and figures of the papers, made anew: ours beside theirs.

A reproduction is a function `(Inputs, Run) -> Findings`, entered in `REPRODUCTIONS` under the paper's name for it.
"""
