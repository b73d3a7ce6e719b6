"""From codes to a better dictionary.

- ``loop``: code, update, repeat; the objective never rises.
- ``moments``: the sums over rows that MOD needs; they add up over blocks, files and machines.
- ``mod``: the method of optimal directions, from moments.
- ``ksvd``: K-SVD, atom by atom; needs the rows at hand.
- ``gradients``: explicit atoms under a kernel, moved downhill; its sums add up too.
- ``atoms``: where atoms start, and what replaces those that nobody uses.

An update is a function ``update(X, dictionary, codes) -> (dictionary, codes)``: the codes come
back with their coefficients and errors under the new dictionary.
"""
