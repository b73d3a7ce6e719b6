"""Gram matrices and atoms in half precision, with bounds of what rounding does, for ``kernels``.

They are divided by powers of two at which they fit. These and the bounds are tensors, since reading
a number would make the card wait.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class GramForScreens(NamedTuple):
    """A Gram matrix, and the same in half precision with the bound of its rounding.

    Both have rows of ``stride`` numbers, which begin at whole lines of the cache; ``half`` is the
    matrix over a power of two. ``numbers`` (3,) float32 are that, u g and g.
    """

    gram: Tensor
    norms2: Tensor
    half: Tensor
    numbers: Tensor


def ready_gram(gram: Tensor) -> GramForScreens:
    """Return a Gram matrix (n_atoms, n_atoms) float32 as ``code_gram`` takes it."""
    n_atoms = len(gram)
    norms2 = gram.diagonal().contiguous()
    unit = power_of_two(norms2.max())
    # Entries off the diagonal only: a picked atom is not picked again, whatever its rounding.
    size = (gram - torch.diag(norms2)).abs_().max()
    bound = size * (2.0**-11 * 1.001) + unit * 2.0**-24
    aligned = torch.nn.functional.pad(gram, (0, -n_atoms % 64))
    return GramForScreens(
        aligned, norms2, (aligned / unit).half(), torch.stack([unit, bound, size])
    )


def unrounded(ready: GramForScreens) -> GramForScreens:
    """Return the same for signals over atoms so alike that half precision leaves too many ties.

    Sums of up to 64 rows in float32 are off by less than 2^-20 of their largest numbers.
    """
    _, bound, size = ready.numbers
    numbers = torch.stack([torch.ones_like(bound), bound * 2.0**-9, size])
    return GramForScreens(ready.gram, ready.norms2, ready.gram, numbers)


def power_of_two(size: Tensor) -> Tensor:
    """Return a power of two above a size (), at most twice it; of no size a small one."""
    exponent = torch.frexp(size.clamp(min=1e-30)).exponent
    return torch.ldexp(torch.ones_like(size), exponent)


class HalvedAtoms(NamedTuple):
    """Atoms of a linear problem: as they are, and halved, with rows of zeros to whole lines.

    ``half`` is ``atoms`` over a power of two. ``numbers`` (2,) float32 are that, and what bounds
    the rounding of products of halved rows when multiplied by a signal's norm.
    """

    atoms: Tensor
    half: Tensor
    numbers: Tensor


def ready_atoms(atoms: Tensor, norms2: Tensor) -> HalvedAtoms:
    """Return atoms (n_atoms, n_features) float32 of these squared norms for ``code_rows``.

    Either factor is off by 2^-11 of itself at most, so that products are by 2^-10 |x| |d|; sums of
    float32 add their own.
    """
    n_atoms, n_features = atoms.shape
    longest = norms2.max().sqrt()
    unit = power_of_two(longest)
    half = torch.nn.functional.pad(atoms / unit, (0, 0, 0, -n_atoms % 64)).half()
    bound = longest * (2.0**-10 * 1.01 + n_features * 2.0**-22)
    return HalvedAtoms(atoms, half, torch.stack([unit, bound]))
