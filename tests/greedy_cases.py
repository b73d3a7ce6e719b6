"""Random problems of greedy pursuits, and one way to code them in every form on any machine."""

import numpy as np

#: By a Gram matrix, by small ones per signal, by rows of one on request, by the rows themselves
#: (which numpy's machine takes as on request).
FORMS = ["gram", "local", "asked", "rows"]
SELECTIONS = [(False, False), (True, False), (False, True), (True, True)]


def random_problem(seed, n_signals, n_features, n_atoms, dtype, shift=0.0, unit=True):
    """Return signals and atoms, these of unit norm before ``shift`` correlates all of them."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((n_atoms, n_features))
    if unit:
        D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((n_signals, n_features))
    return (X + shift).astype(dtype), (D + shift).astype(dtype)


def energies_of(rows):
    with np.errstate(over="ignore"):
        return np.vecdot(rows.astype(np.float64), rows.astype(np.float64))


def products_of(machine, X, D, energies=True):
    def products(start, stop):
        rows = X[start:stop]
        energy = energies_of(rows) if energies else None
        return machine.array(rows @ D.T), machine.array(energy)

    return products


def local_of(machine, X, D, lists, energies=True):
    def local(start, stop):
        some = lists[start:stop]
        own = D[some] * (some >= 0)[:, :, None]
        corr = np.take_along_axis(X[start:stop] @ D.T, some, axis=1) * (some >= 0)
        energy = energies_of(X[start:stop]) if energies else None
        return tuple(map(machine.array, (own @ own.transpose(0, 2, 1), corr, energy)))

    return local


def numpy_of(machine, found):
    return tuple(map(machine.numpy, found))


def code(machine, X, D, n_nonzero, form="gram", energies=True, **options):
    """Code rows of X over rows of D; numpy in, numpy out."""
    if options.get("stop_at") is not None:
        options["stop_at"] = machine.array(options["stop_at"])
    products = products_of(machine, X, D, energies)
    if form == "gram":
        floats = D.dtype.kind == "f"
        gram = machine.gram_matrix(machine.array(D)) if floats else machine.array(D @ D.T)
        return numpy_of(machine, machine.omp(gram, products, len(X), n_nonzero, **options))
    if form == "local":
        lists = np.tile(np.arange(len(D), dtype=np.int32), (len(X), 1))
        return code_local(machine, X, D, lists, n_nonzero, energies, **options)
    rows = (machine.array(X), machine.array(D)) if form == "rows" else None
    found = machine.omp_without_gram(
        lambda atoms: machine.array(D[machine.numpy(atoms)] @ D.T), machine.array(np.vecdot(D, D)),
        products, len(X), n_nonzero, rows=rows, **options,
    )  # fmt: skip
    return numpy_of(machine, found)


def code_local(machine, X, D, lists, n_nonzero, energies=True, **options):
    """Code rows of X, each over the rows of D that its list names."""
    local = local_of(machine, X, D, lists, energies)
    found = machine.omp_local(local, machine.array(lists), n_nonzero, **options)
    return numpy_of(machine, found)


def dense(indices, values, n_atoms):
    W = np.zeros((len(indices), n_atoms), values.dtype)
    used = indices >= 0
    W[np.nonzero(used)[0], indices[used]] = values[used]
    return W


def residual_energies(X, D, indices, values):
    W = dense(indices, values, len(D)).astype(np.float64)
    return energies_of(X.astype(np.float64) - W @ D.astype(np.float64))


def assert_padded_codes(indices, values, left):
    assert indices.dtype == np.int32
    assert left.dtype == np.float64
    assert not values[indices < 0].any()
    assert np.isfinite(values).all()
    for row in indices:
        used = row[row >= 0]
        assert (np.diff(used) > 0).all()
        assert (row[len(used) :] == -1).all()
