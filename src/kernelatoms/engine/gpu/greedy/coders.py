"""What codes a block of signals: the choice, and signals that a fast coder leaves unsettled.

See docs/decisions/009-gpu-precision.md.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kernelatoms.engine.gpu.arrays.products import matmul
from kernelatoms.engine.gpu.arrays.work import compiles_for
from kernelatoms.engine.gpu.greedy.atom_rows import TILE
from kernelatoms.engine.gpu.greedy.blocks import memory_for_a_block
from kernelatoms.engine.gpu.greedy.sources import Limits
from kernelatoms.engine.gpu.greedy.steps import code_asked, code_gram, code_local, code_rows

# What the kernels hold: atoms of a Gram matrix, and nonzeros.
_ATOMS_IN_REGISTERS, _MOST_NONZERO = 4096, 64
# Signals stopped by their residual mostly need fewer nonzeros than they may have.
_LIKELY_NONZERO = 64
# Signals of a Gram matrix coded once more together: their products in float64 take 1 GiB at most.
_SIGNALS_AT_ONCE = 32768

_LAST = torch.iinfo(torch.int32).max


class Asked(NamedTuple):
    """What is asked of a pursuit over so many atoms."""

    n_atoms: int
    n_nonzero: int
    stop_at: Tensor | None  # (n_signals,) float64
    relative: bool
    use_ols: bool
    positive: bool
    dtype: torch.dtype
    device: torch.device
    limits: Limits
    leave_unsettled: bool


class Coder(NamedTuple):
    """What codes blocks of signals, and what that takes.

    Parameters
    ----------
    code : callable
        ``code(*own)`` of what signals have of their own: correlations (n, n_atoms), or signals
        (n, n_features), or Gram matrices and correlations; then how much energy to explain, (n,)
        float64. Returns picked (n, k), then -1; values (n, k), then 0; counts (n,); explained (n,)
        float64; and ``unsettled`` (n,), 0 or why. k is at most n_nonzero.
    bytes_a_signal : int
        The memory that this takes, that of ``own`` included.
    settles_all : bool
        False: signals that are ``unsettled`` are coded again by the plain coder. True: those are
        what rounding ended.
    ascending : bool
        Whether picked atoms come in ascending order.
    takes_rows : bool
        Whether ``own`` are signals, not correlations.
    """

    code: Callable[..., tuple[Tensor, ...]]
    bytes_a_signal: int
    settles_all: bool = True
    ascending: bool = False
    takes_rows: bool = False


class Coders(NamedTuple):
    """The coder chosen, and the plain one for signals that it leaves unsettled."""

    chosen: Coder
    plain: Coder


def choose_coder(form: str, shared: tuple[Any, ...], asked: Asked) -> Coders:
    """Choose what codes blocks of signals.

    Parameters
    ----------
    form : {"gram", "local", "asked", "rows", "gram and rows"}
        What is known of atoms and signals.
    shared : tuple
        What all signals share: gram and norms2; nothing; gram_rows and norms2; atoms and norms2;
        gram, norms2 and atoms.
    asked : Asked
        What is asked for.
    """
    plain = plain_coder(form, shared, asked)
    fast = fast_coder(form, shared, asked) if compiles_for(asked.device) else None
    return Coders(chosen=fast or plain, plain=plain)


def codes_rows_over_gram(asked: Asked) -> bool:
    """Whether products of rows and atoms are best left to the coder."""
    return compiles_for(asked.device) and _fits_kernels(asked) and not asked.use_ols


def _fits_kernels(asked: Asked) -> bool:
    return asked.dtype == torch.float32 and 0 < asked.n_atoms <= _ATOMS_IN_REGISTERS


def _fits_screens(asked: Asked) -> bool:
    return asked.dtype == torch.float32 and asked.n_atoms > 0 and not asked.use_ols


def fast_coder(form: str, shared: tuple[Any, ...], asked: Asked) -> Coder | None:
    """Return the coder in Triton, if there is one for this; arguments as above."""
    most = min(asked.n_nonzero, asked.n_atoms)
    capped = min(most, _MOST_NONZERO if asked.stop_at is None else _MOST_NONZERO // 2)
    n_bytes = 16 * (capped + 2)
    options: dict[str, Any] = {"n_nonzero": capped, "positive": asked.positive}
    if form in ("gram", "gram and rows") and _fits_kernels(asked):
        code, of_signal = _over_gram(shared, asked, options)
        settles_all = capped == most and not asked.use_ols
    elif form == "rows" and _fits_screens(asked):
        from kernelatoms.engine.gpu.greedy import many_atoms, screens

        n_features = shared[0].shape[1]
        code = partial(many_atoms.code_rows, screens.ready_atoms(shared[0]), **options)
        of_signal = many_atoms.bytes_a_signal(asked.n_atoms, n_features, capped)
        settles_all = asked.leave_unsettled and capped == most
    else:
        return None
    return Coder(
        partial(_without_the_capped, code, capped < most), n_bytes + of_signal,
        settles_all=settles_all, ascending=True, takes_rows=form != "gram",
    )  # fmt: skip


def _over_gram(
    shared: tuple[Tensor, ...], asked: Asked, options: dict[str, Any]
) -> tuple[Callable[..., Any], int]:
    """Return what codes signals over a Gram matrix, known by products or by rows, and its memory.

    ``shared`` is gram and norms2, then atoms if signals are rows.
    """
    from kernelatoms.engine.gpu.greedy import kernels
    from kernelatoms.engine.gpu.greedy.exact import code_exactly

    gram, norms2, *rows = shared
    ready = kernels.ready_gram(gram)
    if asked.use_ols:
        code = partial(kernels.code_gram, ready, use_ols=True, **options)
        return code, 12 * asked.n_atoms

    @cache
    def wide() -> tuple[Tensor, ...]:
        """Return the Gram matrix in float64, and atoms: made for the first signal in doubt."""
        atoms = [part.double() for part in rows]
        return (atoms[0] @ atoms[0].T if atoms else gram.double(), *atoms)

    def again(own: Tensor, until: Tensor) -> Any:
        corr = matmul(own, rows[0].T) if rows else own
        return kernels.code_gram(kernels.unrounded(ready), corr, until, **options)

    def exactly(own: Tensor, until: Tensor) -> Any:
        gram64, *atoms = wide()
        corr = own.double() @ atoms[0].T if atoms else own.double()
        return code_exactly(gram64, corr, until, exact=bool(atoms), **options)

    if not rows:
        code = partial(kernels.code_gram, ready, **options)
        return partial(_in_turn, code, again, exactly), 12 * asked.n_atoms
    atoms = kernels.ready_atoms(rows[0], norms2)
    code = partial(kernels.code_rows, ready, atoms, **options)
    return partial(_in_turn, code, again, exactly), 2 * asked.n_atoms + 2 * rows[0].shape[1]


def _in_turn(
    code: Callable[..., Any], again: Callable[..., Any], exactly: Callable[..., Any], *own: Tensor
) -> tuple[Tensor, ...]:
    """Code signals: in half precision, those that are tied there in float32, the rest in float64.

    The host looks once at how many there are of either.
    """
    from kernelatoms.engine.gpu.greedy.kernels import TIED

    coded = tuple(code(*own))
    unsettled = coded[-1]
    tied = unsettled == TIED.value
    n_tied, n_unsettled = torch.stack([tied.sum(), unsettled.count_nonzero()]).tolist()
    if n_tied:
        _code_some(coded, again, tied, own)
    if n_unsettled:
        _code_some(coded, exactly, unsettled > 0, own)
    return coded


def _code_some(
    coded: tuple[Tensor, ...], code: Callable[..., Any], which: Tensor, own: tuple[Tensor, ...]
) -> None:
    """Code some signals once more, as many at a time as their products leave room for."""
    rows = which.nonzero()[:, 0]
    for some in rows.split(_SIGNALS_AT_ONCE) if len(rows) else ():
        for into, found in zip(coded, code(*(part[some] for part in own)), strict=True):
            into[some] = found


def _without_the_capped(code: Callable[..., Any], capped: bool, *own: Tensor) -> tuple[Tensor, ...]:
    """Code signals; those that could go on at the most atoms of a kernel are not settled."""
    indices, values, counts, explained, unsettled = code(*own)
    if capped:
        unsettled |= (counts == indices.shape[1]) & (explained < own[-1])
    return indices, values, counts, explained, unsettled


def plain_coder(form: str, shared: tuple[Any, ...], asked: Asked) -> Coder:
    """Return the coder in plain torch, which settles every signal; arguments as above."""
    n_atoms, size = asked.n_atoms, asked.dtype.itemsize
    most = min(asked.n_nonzero, n_atoms)
    if asked.stop_at is not None:
        most = min(most, _LIKELY_NONZERO)
    options: dict[str, Any] = {
        "n_nonzero": asked.n_nonzero, "use_ols": asked.use_ols, "positive": asked.positive,
        "limits": asked.limits,
    }  # fmt: skip
    # Directions and products with them; codes as they are kept and as they are returned.
    n_bytes = 3 * size * most**2 + 64 * (most + 1)
    # Correlations as they come and as they are used, what is left of them, a step, and scores.
    wide = (9 if asked.use_ols else 5) * size * n_atoms
    if form == "gram":
        return Coder(partial(code_gram, *shared, **options), n_bytes + wide)
    if form == "gram and rows":
        gram, norms2, atoms = shared

        def code(signals: Tensor, until: Tensor) -> tuple[Tensor, ...]:
            return code_gram(gram, norms2, matmul(signals, atoms.T), until, **options)

        return Coder(code, n_bytes + wide, takes_rows=True)
    if form == "local":
        grams = 2 * size * n_atoms**2
        return Coder(partial(code_local, **options), n_bytes + wide + grams)
    if form == "rows":
        n_features = shared[0].shape[1]
        n_bytes += size * (10 * n_features + 3 * min(n_atoms, TILE))
        n_bytes += 2 * size * n_atoms if asked.use_ols else 0
        return Coder(partial(code_rows, *shared, **options), n_bytes)
    (gram_rows, norms2), n_rows = shared, n_atoms
    memory = memory_for_a_block(asked.device, 2 * size * n_atoms**2)
    if 2 * size * n_atoms**2 > memory:
        n_rows = max(1, memory // (2 * size * n_atoms))
        wide += most * size * n_atoms
    return Coder(partial(code_asked, gram_rows, norms2, n_rows, **options), n_bytes + wide)


def settled(
    coders: Coders, own: tuple[Tensor, ...], names: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Code a block, signals that the chosen coder leaves unsettled by the plain one.

    Parameters
    ----------
    coders : Coders
        The coder, and the plain one.
    own : tuple of tensors
        What each signal has of its own, as ``Coder.code`` wants it.
    names : (n, n_candidates) int32, optional
        What atoms are to be called; their numbers without.

    Returns
    -------
    indices : (n, k) int32
        Atoms, ascending, then -1; k is at most n_nonzero.
    values : (n, k)
        Coefficients, then 0.
    explained : (n,) float64
        What they explain.
    unsettled : (n,) bool
        Whether rounding ended the pursuit.
    """
    chosen, plain = coders
    picked, values, _, explained, unsettled = chosen.code(*own)
    unsettled = unsettled > 0
    if names is not None or not chosen.ascending:
        picked, values = _in_order(picked, values, names)
    if chosen.settles_all:
        return picked.int(), values, explained, unsettled
    rows = unsettled.nonzero()[:, 0]
    if not len(rows):
        return picked.int(), values, explained, unsettled
    memory = memory_for_a_block(explained.device, len(rows) * plain.bytes_a_signal)
    for some in rows.split(max(1, memory // plain.bytes_a_signal)):
        again, their_values, _, their_explained, ended = plain.code(*(part[some] for part in own))
        its_names = None if names is None else names[some]
        again, their_values = _in_order(again, their_values, its_names)
        more = again.shape[1] - picked.shape[1]
        if more > 0:
            picked = torch.nn.functional.pad(picked, (0, more), value=-1)
            values = torch.nn.functional.pad(values, (0, more))
        picked[some], values[some], explained[some] = -1, 0, their_explained
        unsettled[some] = ended
        here = slice(0, again.shape[1])
        picked[some, here], values[some, here] = again.to(picked.dtype), their_values
    return picked.int(), values, explained, unsettled


def _in_order(picked: Tensor, values: Tensor, names: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return codes by ascending atom, or name of an atom: what sparse matrices want."""
    empty = picked < 0
    if names is not None and picked.shape[1]:
        picked = names.gather(1, picked.masked_fill(empty, 0).long())
    ordered, order = picked.masked_fill(empty, _LAST).sort(dim=1)
    return ordered.masked_fill_(ordered == _LAST, -1), values.gather(1, order)
