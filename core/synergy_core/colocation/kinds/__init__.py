"""Pairs of very many kinds of jobs on one GPU, worked out many at once.

The numbers are those that `Grouping.together` finds for two jobs, bit for bit. One file for each idea:

* `kind`: which jobs are alike, so that one pair tells of all of them;
* `known_pairs`: what plans have found, for the next ones;
* `pairs_on_type`: what the two of each pair keep on a GPU type;
* `fitting`: which two may have a GPU of the type together;
* `members` and `surfaces`: what CPU and memory jobs need there, and how fast they are with it.

Arrays of P pairs are 2 x P: the first and the second kind of each pair, or what is true of each beside the other.
"""
