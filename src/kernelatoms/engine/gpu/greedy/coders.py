"""The choice of what codes a block of signals; unsettled signals are coded again.

See docs/decisions/009-gpu-precision.md.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kernelatoms.engine.gpu.arrays.linalg import matmul
from kernelatoms.engine.gpu.arrays.work import compiles_for, memory_for_a_block
from kernelatoms.engine.gpu.greedy.half_precision import ready_atoms, ready_gram, unrounded
from kernelatoms.engine.gpu.greedy.sources import (
    TILE,
    AtomRows,
    GramRows,
    RequestedRows,
    Rules,
    Source,
    local_gram_rows,
)
from kernelatoms.engine.gpu.greedy.steps import Picks, pursue

# What the kernels hold: atoms of a Gram matrix, and nonzeros.
_ATOMS_IN_REGISTERS, _MOST_NONZERO = 4096, 64
# Signals stopped by their residual mostly need fewer nonzeros than they may have.
_LIKELY_NONZERO = 64
# Signals of a Gram matrix coded once more together: their products in float64 take 1 GiB at most.
_SIGNALS_AT_ONCE = 32768

_LAST = torch.iinfo(torch.int32).max


class PursuitSpec(NamedTuple):
    """Size and options of a pursuit."""

    n_signals: int
    n_atoms: int
    n_nonzero: int
    stop_at: Tensor | None  # (n_signals,) float64
    relative: bool
    rules: Rules
    dtype: torch.dtype
    device: torch.device
    leave_unsettled: bool


class Coder(NamedTuple):
    """A function that codes blocks of signals, and its properties.

    Parameters
    ----------
    code : callable
        ``code(*own)`` takes the signals' own tensors: correlations (n, n_atoms), or signals
        (n, n_features), or Gram matrices and correlations; then how much energy to explain, (n,)
        float64. Returns picked (n, k), then -1; values (n, k), then 0; counts (n,); explained (n,)
        float64; and ``unsettled`` (n,), 0 or why. k is at most n_nonzero.
    bytes_per_signal : int
        The memory that this takes, including ``own``.
    settles_all : bool
        False: signals that are ``unsettled`` are coded again by the plain coder. True: those are
        what rounding ended.
    ascending : bool
        Whether picked atoms come in ascending order.
    """

    code: Callable[..., tuple[Tensor, ...]]
    bytes_per_signal: int
    settles_all: bool = True
    ascending: bool = False


class Coders(NamedTuple):
    """The coder chosen, and the plain one for signals that it leaves unsettled."""

    chosen: Coder
    plain: Coder


def choose_coder(form: str, shared: tuple[Any, ...], spec: PursuitSpec) -> Coders:
    """Choose what codes blocks of signals.

    Parameters
    ----------
    form : {"gram", "local", "requests", "rows", "gram and rows"}
        The form of the problem.
    shared : tuple
        What all signals share: gram and norms2; nothing; gram_rows and norms2; atoms and norms2;
        gram, norms2 and atoms.
    spec : PursuitSpec
        What is asked for.
    """
    plain = plain_coder(form, shared, spec)
    fast = fast_coder(form, shared, spec) if compiles_for(spec.device) else None
    return Coders(chosen=fast or plain, plain=plain)


def codes_rows_over_gram(spec: PursuitSpec) -> bool:
    """Whether the coder multiplies rows and atoms faster itself."""
    return compiles_for(spec.device) and _fits_kernels(spec) and not spec.rules.use_ols


def _fits_kernels(spec: PursuitSpec) -> bool:
    return spec.dtype == torch.float32 and 0 < spec.n_atoms <= _ATOMS_IN_REGISTERS


def _fits_screens(spec: PursuitSpec) -> bool:
    return spec.dtype == torch.float32 and spec.n_atoms > 0 and not spec.rules.use_ols


def fast_coder(form: str, shared: tuple[Any, ...], spec: PursuitSpec) -> Coder | None:
    """Return the coder in Triton, if there is one for this; arguments as above."""
    most = min(spec.n_nonzero, spec.n_atoms)
    capped = min(most, _MOST_NONZERO if spec.stop_at is None else _MOST_NONZERO // 2)
    n_bytes = 16 * (capped + 2)
    options: dict[str, Any] = {"n_nonzero": capped, "positive": spec.rules.positive}
    if form in ("gram", "gram and rows") and _fits_kernels(spec):
        code, of_signal = _gram_coder(shared, spec, options)
        settles_all = capped == most and not spec.rules.use_ols
    elif form == "rows" and _fits_screens(spec):
        from kernelatoms.engine.gpu.greedy import many_atoms, screens

        n_features = shared[0].shape[1]
        code = partial(many_atoms.code_rows, screens.ready_atoms(shared[0]), **options)
        of_signal = many_atoms.bytes_per_signal(spec.n_atoms, n_features, capped)
        settles_all = spec.leave_unsettled and capped == most
    else:
        return None
    return Coder(
        partial(_without_the_capped, code, capped < most), n_bytes + of_signal,
        settles_all=settles_all, ascending=True,
    )  # fmt: skip


def _gram_coder(
    shared: tuple[Tensor, ...], spec: PursuitSpec, options: dict[str, Any]
) -> tuple[Callable[..., Any], int]:
    """Return a coder of products or rows over a Gram matrix, and its memory per signal.

    ``shared`` is gram and norms2, then atoms if signals are rows.
    """
    from kernelatoms.engine.gpu.greedy import kernels
    from kernelatoms.engine.gpu.greedy.exact import code_exactly

    gram, norms2, *rows = shared
    ready = ready_gram(gram)
    if spec.rules.use_ols:
        code = partial(kernels.code_gram, ready, use_ols=True, **options)
        return code, 12 * spec.n_atoms

    @cache
    def wide() -> tuple[Tensor, ...]:
        """Return the Gram matrix in float64, and atoms: made for the first signal in doubt."""
        atoms = [part.double() for part in rows]
        return (atoms[0] @ atoms[0].T if atoms else gram.double(), *atoms)

    def again(own: Tensor, until: Tensor) -> Any:
        corr = matmul(own, rows[0].T) if rows else own
        return kernels.code_gram(unrounded(ready), corr, until, **options)

    def exactly(own: Tensor, until: Tensor) -> Any:
        gram64, *atoms = wide()
        corr = own.double() @ atoms[0].T if atoms else own.double()
        return code_exactly(gram64, corr, until, exact=bool(atoms), **options)

    if not rows:
        code = partial(kernels.code_gram, ready, **options)
        return partial(_code_in_stages, code, again, exactly), 12 * spec.n_atoms
    atoms = ready_atoms(rows[0], norms2)
    code = partial(kernels.code_rows, ready, atoms, **options)
    return partial(_code_in_stages, code, again, exactly), 2 * spec.n_atoms + 2 * rows[0].shape[1]


def _code_in_stages(
    code: Callable[..., Any], again: Callable[..., Any], exactly: Callable[..., Any], *own: Tensor
) -> tuple[Tensor, ...]:
    """Code signals: in half precision, those that are tied there in float32, the rest in float64.

    The host reads once how many there are of either.
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
    """Code signals; those that could use more atoms than a kernel holds are unsettled."""
    indices, values, counts, explained, unsettled = code(*own)
    if capped:
        unsettled |= (counts == indices.shape[1]) & (explained < own[-1])
    return indices, values, counts, explained, unsettled


def plain_coder(form: str, shared: tuple[Any, ...], spec: PursuitSpec) -> Coder:
    """Return the coder in plain torch, which settles every signal; arguments as above."""
    n_atoms, size = spec.n_atoms, spec.dtype.itemsize
    most = min(spec.n_nonzero, n_atoms)
    if spec.stop_at is not None:
        most = min(most, _LIKELY_NONZERO)
    # Directions and products with them; codes as they are kept and as they are returned.
    n_bytes = 3 * size * most**2 + 64 * (most + 1)
    # Correlations as they come and as they are used, what is left of them, a step, and scores.
    wide = (9 if spec.rules.use_ols else 5) * size * n_atoms
    source: Callable[..., Source]
    if form == "rows":
        atoms, norms2 = shared
        n_features = atoms.shape[1]
        source = partial(AtomRows, atoms, norms2, spec.rules)
        n_bytes += size * (10 * n_features + 3 * min(n_atoms, TILE))
        n_bytes += 2 * size * n_atoms if spec.rules.use_ols else 0
        return Coder(partial(_code_plainly, source, spec.n_nonzero), n_bytes)
    n_bytes += wide
    if form == "local":
        source = partial(local_gram_rows, spec.rules)
        n_bytes += 2 * size * n_atoms**2
    elif form == "requests":
        (gram_rows, norms2), n_rows = shared, n_atoms
        memory = memory_for_a_block(spec.device, 2 * size * n_atoms**2)
        if 2 * size * n_atoms**2 > memory:
            n_rows = max(1, memory // (2 * size * n_atoms))
            n_bytes += most * size * n_atoms
        source = partial(RequestedRows, gram_rows, norms2, n_rows, spec.rules)
    else:
        gram, norms2, *rows = shared

        def source(own: Tensor) -> Source:
            corr = matmul(own, rows[0].T) if rows else own
            return GramRows(gram, norms2[None], spec.rules, corr)

    return Coder(partial(_code_plainly, source, spec.n_nonzero), n_bytes)


def _code_plainly(source: Callable[..., Source], n_nonzero: int, *own: Tensor) -> Picks:
    *numbers, until = own
    return pursue(source(*numbers), until, n_nonzero)


def code_with_fallback(
    coders: Coders, own: tuple[Tensor, ...], names: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Code a block, signals that the chosen coder leaves unsettled by the plain one.

    Parameters
    ----------
    coders : Coders
        The coder, and the plain one.
    own : tuple of tensors
        The signals' own tensors, as ``Coder.code`` takes them.
    names : (n, n_candidates) int32, optional
        The atoms behind the columns of the problem; without, columns are atoms.

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
        picked, values = _sorted_codes(picked, values, names)
    if chosen.settles_all:
        return picked.int(), values, explained, unsettled
    rows = unsettled.nonzero()[:, 0]
    if not len(rows):
        return picked.int(), values, explained, unsettled
    memory = memory_for_a_block(explained.device, len(rows) * plain.bytes_per_signal)
    for some in rows.split(max(1, memory // plain.bytes_per_signal)):
        again, their_values, _, their_explained, ended = plain.code(*(part[some] for part in own))
        its_names = None if names is None else names[some]
        again, their_values = _sorted_codes(again, their_values, its_names)
        more = again.shape[1] - picked.shape[1]
        if more > 0:
            picked = torch.nn.functional.pad(picked, (0, more), value=-1)
            values = torch.nn.functional.pad(values, (0, more))
        picked[some], values[some], explained[some] = -1, 0, their_explained
        unsettled[some] = ended
        here = slice(0, again.shape[1])
        picked[some, here], values[some, here] = again.to(picked.dtype), their_values
    return picked.int(), values, explained, unsettled


def _sorted_codes(picked: Tensor, values: Tensor, names: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return codes sorted by atom, as sparse matrices need them; ``names`` as above."""
    empty = picked < 0
    if names is not None and picked.shape[1]:
        picked = names.gather(1, picked.masked_fill(empty, 0).long())
    ordered, order = picked.masked_fill(empty, _LAST).sort(dim=1)
    return ordered.masked_fill_(ordered == _LAST, -1), values.gather(1, order)
