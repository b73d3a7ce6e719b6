"""Us and the peers. A function prepares, warms up, and returns the call to be timed.

Peers are imported inside their functions: a child process loads only what it runs.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[], Any]


def coding_data(n_features: int, n_atoms: int, n_signals: int, dtype: str) -> tuple[Any, Any]:
    """Return Gaussian signals and unit-norm Gaussian atoms, as rows."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal((n_atoms, n_features)).astype(dtype)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    return rng.standard_normal((n_signals, n_features)).astype(dtype), D


def omp_kernelatoms(
    shape: list[int], dtype: str, selection: str = "omp", positive: bool = False
) -> Call:
    from kernelatoms import sparse_encode

    f, a, k, n = shape
    X, D = coding_data(f, a, n, dtype)
    options = {"n_nonzero_coefs": k, "selection": selection, "positive": positive}
    sparse_encode(X[:100], D, **options)
    return lambda: sparse_encode(X, D, **options)


def omp_spams(shape: list[int], dtype: str) -> Call:
    """SPAMS' omp selects by residual decrease: what others call OLS."""
    import spams

    f, a, k, n = shape
    X, D = (np.asfortranarray(rows.T) for rows in coding_data(f, a, n, dtype))
    threads = _threads()
    spams.omp(X[:, :100], D, L=k, numThreads=threads)
    return lambda: spams.omp(X, D, L=k, numThreads=threads)


def omp_sklearn(shape: list[int], dtype: str) -> Call:
    from sklearn.linear_model import orthogonal_mp_gram

    f, a, k, n = shape
    X, D = coding_data(f, a, n, dtype)
    return lambda: orthogonal_mp_gram(D @ D.T, D @ X.T, n_nonzero_coefs=k)


def omp_dictlearn(shape: list[int], dtype: str) -> Call:
    """Time dictlearn, which computes in float64 whatever it is given."""
    import dictlearn

    f, a, k, n = shape
    X, D = coding_data(f, a, n, dtype)
    dictlearn.sparse_encode(X[:100], D, algorithm="omp", n_nonzero_coefs=k)
    return lambda: dictlearn.sparse_encode(X, D, algorithm="omp", n_nonzero_coefs=k)


def gemm_floor(shape: list[int], dtype: str) -> Call:
    """Gram and correlations alone, by numpy's threaded BLAS: no pursuit can be faster."""
    f, a, _, n = shape
    X, D = coding_data(f, a, n, dtype)
    return lambda: [D @ D.T, X @ D.T]


def support_agreement(shape: list[int], dtype: str) -> Call:
    """Return the share of (at most 500) signals whose support is scikit-learn's."""
    from sklearn.linear_model import orthogonal_mp_gram

    from kernelatoms import sparse_encode

    f, a, k, n = shape
    X, D = coding_data(f, a, min(n, 500), dtype)

    def call() -> float:
        ours = sparse_encode(X, D, n_nonzero_coefs=k, sparse_output=False)
        theirs = orthogonal_mp_gram(D @ D.T, D @ X.T, n_nonzero_coefs=k).T
        return float(((ours != 0) == (theirs != 0)).all(axis=1).mean())

    return call


def ksvd_start(dtype: str, data: str) -> tuple[Any, Any]:
    """Return USPS digit 0 (or a stand-in of its size when the data is not here) and 300 rows."""
    rng = np.random.default_rng(0)
    if data == "usps":
        from kernelatoms.datasets import load_usps

        usps = load_usps(download_if_missing=False)
        X = (usps.X_train[usps.y_train == 0] + 1) / 2
    else:
        X = np.abs(rng.standard_normal((1194, 30)) @ rng.standard_normal((30, 256)))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)
    return X, X[rng.permutation(len(X))[:300]]


def ksvd_kernelatoms(dtype: str, data: str, selection: str = "omp") -> Call:
    from kernelatoms import KSVD

    X, start = ksvd_start(dtype, data)
    learner = KSVD(n_nonzero_coefs=5, selection=selection, max_iter=5, tol=0, dict_init=start)
    learner.fit(X[:400])
    return lambda: float(learner.fit(X).objective_[-1])


def ksvd_dictlearn(algorithm: str, data: str) -> Call:
    from dictlearn import DictionaryLearning

    X, start = ksvd_start("float64", data)
    learner = DictionaryLearning(
        300, fit_algorithm=algorithm, n_nonzero_coefs=5, max_iter=5, dict_init=start,
        random_state=0,
    )  # fmt: skip
    learner.fit(X[:400])
    return lambda: float(learner.fit(X).error_[-1] ** 2 * X.size)


def ksvd_spams(dtype: str, data: str) -> Call:
    """SPAMS has no K-SVD; its online learner gets as many passes, by the same l0 constraint."""
    import spams

    X, start = ksvd_start(dtype, data)
    X, start = np.asfortranarray(X.T), np.asfortranarray(start.T)
    n_batches = -(-5 * X.shape[1] // 512)
    options = {
        "D": start,
        "mode": 3,  # min |x - D w|^2 with at most lambda1 nonzeros
        "lambda1": 5,
        "K": 300,
        "batchsize": 512,
        "iter": n_batches,
        "numThreads": _threads(),
        "verbose": False,
    }

    def call() -> float:
        D = spams.trainDL(X, **options)
        W = spams.omp(X, D, L=5, numThreads=_threads())
        return float(np.linalg.norm(X - D @ W.toarray()) ** 2)

    call()
    return call


def ksvd_sklearn(dtype: str, data: str) -> Call:
    """scikit-learn has no K-SVD; its online learner codes by OMP at the end, learns by lasso."""
    from sklearn.decomposition import MiniBatchDictionaryLearning

    X, start = ksvd_start(dtype, data)
    learner = MiniBatchDictionaryLearning(
        300, alpha=0.05, max_iter=5, batch_size=256, dict_init=start, random_state=0,
        transform_algorithm="omp", transform_n_nonzero_coefs=5, fit_algorithm="cd",
        tol=0, max_no_improvement=None,
    )  # fmt: skip

    def call() -> float:
        W = learner.fit(X).transform(X)
        return float(np.linalg.norm(X - W @ learner.components_) ** 2)

    warnings.simplefilter("ignore")
    return call


def million_rows(n_signals: int) -> Call:
    """Code n x 256 float32 over 1,024 atoms; the memory above input and output is the value."""
    import resource

    from kernelatoms.coding import LinearProblem, omp

    rng = np.random.default_rng(0)
    D = rng.standard_normal((1024, 256), dtype=np.float32)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    omp(LinearProblem(rng.standard_normal((10, 256), dtype=np.float32), D), 10)
    X = np.empty((n_signals, 256), np.float32)
    for start in range(0, n_signals, 10_000):
        X[start : start + 10_000] = rng.standard_normal((10_000, 256), dtype=np.float32)

    def call() -> float:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        codes = omp(LinearProblem(X, D), 10)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        output = codes.indices.nbytes + codes.values.nbytes + codes.error.nbytes
        return after / 2**20 - before / 2**20 - output / 2**30

    return call


def _threads() -> int:
    from benchmarks.harness import N_THREADS

    return N_THREADS


if __name__ == "__main__":
    sys.exit("Run python -m benchmarks.run")


def kernel_rows(n: int, data: str, dtype: str) -> tuple[Any, Any]:
    """Return n unit rows of USPS (digit 0 first; a stand-in without the data) and a start."""
    rng = np.random.default_rng(0)
    if data == "usps":
        from kernelatoms.datasets import load_usps

        usps = load_usps(download_if_missing=False)
        X = (usps.X_train[np.argsort(usps.y_train, kind="stable")] + 1) / 2
    else:
        X = np.abs(rng.standard_normal((n, 30)) @ rng.standard_normal((30, 256)))
    X = X[:n].astype(np.float64)
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)
    return X, rng.permutation(n)[:300]


def kernel_ksvd_kernelatoms(n: int, data: str, dtype: str = "float64") -> Call:
    from kernelatoms import KernelKSVD

    X, _ = kernel_rows(n, data, dtype)
    learner = KernelKSVD(
        300, kernel="poly", degree=4, gamma=1, coef0=0, n_nonzero_coefs=5, max_iter=5, tol=0,
        random_state=0,
    )  # fmt: skip
    learner.fit(X[:400])
    return lambda: float(learner.fit(X).objective_[-1])


def kernel_ksvd_dictlearn(n: int, data: str, algorithm: str) -> Call:
    from dictlearn import KernelDictionaryLearning

    X, _ = kernel_rows(n, data, "float64")
    learner = KernelDictionaryLearning(
        300, kernel="poly", degree=4, gamma=1, coef0=0, fit_algorithm=algorithm,
        n_nonzero_coefs=5, max_iter=5, random_state=0,
    )  # fmt: skip
    learner.fit(X[:400])

    def call() -> float:
        learner.fit(X)
        # Its own codes of the training rows, judged in feature space as ours are.
        W, A, K = learner.transform(X), learner.dual_components_, (X @ X.T) ** 4
        W = np.asarray(W.todense() if hasattr(W, "todense") else W)
        E = np.eye(n) - A @ (W if W.shape[0] == A.shape[1] else W.T)
        return float(np.einsum("ij,ij->", E, K @ E))

    return call


def kernel_ksvd_textbook(n: int, data: str) -> Call:
    """Figs. 2 and 3 of Nguyen et al. as written, with N x N matrices: the tests' oracle."""
    sys.path.insert(0, "tests")
    from oracles import kernel_learning as book

    X, start = kernel_rows(n, data, "float64")
    K = (X @ X.T) ** 4

    def call() -> float:
        A = np.zeros((n, len(start)))
        A[start, range(len(start))] = 1 / np.sqrt(np.diagonal(K)[start])
        for _ in range(5):
            W = book.code_all(K, A, 5)
            A, W = book.kernel_ksvd_pass(K, A, W)
        return book.objective(K, A, W)

    return call


def lasso_data(shape: list[int], kind: str) -> tuple[Any, Any, float]:
    """Return signals, atoms and penalty; "alike": nearly parallel atoms, as of wide kernels."""
    f, a, n = shape
    X, D = coding_data(f, a, n, "float64")
    if kind == "alike":
        X, D = np.abs(X) + 2, np.abs(D) + 0.2
        D /= np.linalg.norm(D, axis=1, keepdims=True)
    return X, D, 0.1 * float(np.median(np.abs(X @ D.T).max(axis=1)))


def lasso_objective(X: Any, D: Any, W: Any, alpha: float) -> float:
    W = np.asarray(W.todense() if hasattr(W, "todense") else W)
    return float(0.5 * np.sum((X - W @ D) ** 2) + alpha * np.abs(W).sum()) / len(X)


def lasso_kernelatoms(shape: list[int], kind: str) -> Call:
    from kernelatoms import sparse_encode

    X, D, alpha = lasso_data(shape, kind)
    sparse_encode(X[:20], D, method="lasso", alpha=alpha)
    return lambda: lasso_objective(X, D, sparse_encode(X, D, method="lasso", alpha=alpha), alpha)


def lasso_spams(shape: list[int], kind: str) -> Call:
    import spams

    X, D, alpha = lasso_data(shape, kind)
    signals, atoms = np.asfortranarray(X.T), np.asfortranarray(D.T)
    options = {"lambda1": alpha, "mode": 2, "numThreads": _threads()}
    spams.lasso(signals[:, :20], atoms, **options)
    return lambda: lasso_objective(X, D, spams.lasso(signals, atoms, **options).T, alpha)


def lasso_sklearn(shape: list[int], kind: str, algorithm: str) -> Call:
    from sklearn.decomposition import sparse_encode

    X, D, alpha = lasso_data(shape, kind)
    warnings.simplefilter("ignore")
    options = {"algorithm": algorithm, "alpha": alpha, "max_iter": 1000, "n_jobs": _threads()}
    return lambda: lasso_objective(X, D, sparse_encode(X, D, **options), alpha)
