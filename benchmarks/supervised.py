"""LC-KSVD and D-KSVD against dictlearn, FDDL against DICTOL and against accelerated proximal steps.

python -m benchmarks.run supervised, with the data sets in KERNELATOMS_DATA. Extended Yale B, 504
random-face features of unit norm, 32 rows a person to learn from, 1,198 to classify; USPS, 7,291
rows of unit norm. All in float64, on one split. Objectives are computed in one way for all: that of
(9) by coding the stacked rows over the joint atoms afresh, that of (7) from atoms and codes.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.harness import Contender, compare

Call = Callable[[], Any]
MODULE = "benchmarks.supervised"
N_PEOPLE, ATOMS, NONZEROS = 38, 15, 30
#: The LKDL paper's for unit rows, sqrt(alpha) = 1/30 and sqrt(beta) = 1/91, and our defaults.
WEIGHTS = {"published": (30.0**-2, 91.0**-2), "ours": (0.1, 0.1)}
RIDGE = 0.01
#: lambda of DICTOL, beside half of the squares; lambda_1 of eq. (7) is twice that.
LAMBDA, FISHER = 0.05, 0.001


@lru_cache(maxsize=1)
def faces() -> tuple[Any, Any, Any, Any]:
    """Return rows to learn from, class after class, their classes from 0, and rows to classify."""
    from kernelatoms.datasets import load_yaleb

    bunch, rng = load_yaleb(size="randomface504"), np.random.default_rng(0)
    X = bunch.X.astype(np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    people, y = np.unique(bunch.y, return_inverse=True)
    some = [rng.permutation(np.flatnonzero(y == who))[:32] for who in range(len(people))]
    train = np.concatenate(some)
    return X[train], y[train], np.delete(X, train, axis=0), np.delete(y, train)


@lru_cache(maxsize=1)
def digits(n_rows: int) -> tuple[Any, Any, Any, Any]:
    """Return the first USPS rows, class after class, and all test rows."""
    from kernelatoms.datasets import load_usps

    usps = load_usps()
    rows, order = [], np.argsort(usps.y_train[:n_rows], kind="stable")
    for X in (usps.X_train[:n_rows][order], usps.X_test):
        X = X.reshape(len(X), -1).astype(np.float64)
        rows.append(X / np.linalg.norm(X, axis=1, keepdims=True))
    y = usps.y_train[:n_rows][order].astype(np.intp)
    return rows[0], y, rows[1], usps.y_test.astype(np.intp)


# LC-KSVD and D-KSVD -------------------------------------------------------------------------------


def _label_objective(D: Any, theta: Any, consistency: Any, alpha: float, beta: float) -> float:
    """Return (9) of joint atoms, the training rows coded afresh; ``consistency`` may be None."""
    from kernelatoms import residual_norms, sparse_encode

    X, y, *_ = faces()
    H = np.eye(N_PEOPLE)[y]
    rows, atoms = [X, np.sqrt(beta) * H], [D, np.sqrt(beta) * theta.T]
    if consistency is not None:
        rows.append(np.sqrt(alpha) * np.repeat(H, ATOMS, axis=1))
        atoms.append(np.sqrt(alpha) * consistency.T)
    joint, stack = np.hstack(atoms), np.hstack(rows)
    joint /= np.linalg.norm(joint, axis=1, keepdims=True)
    codes = sparse_encode(stack, joint, n_nonzero_coefs=NONZEROS)
    return float((residual_norms(stack, joint, codes) ** 2).sum())


def _label_result(predict: Any, D: Any, theta: Any, consistency: Any, weights: Any) -> Any:
    *_, rows, y = faces()
    accuracy = float(np.mean(predict(rows) == y))
    return lambda: [_label_objective(D, theta, consistency, *weights), 100 * accuracy]


def our_lcksvd(kind: str, passes: int) -> Call:
    from kernelatoms import LCKSVDClassifier

    X, y, *_ = faces()
    alpha, beta = WEIGHTS[kind]

    def make(passes: int) -> Any:
        return LCKSVDClassifier(
            N_PEOPLE * ATOMS, n_nonzero_coefs=NONZEROS, consistency_weight=alpha,
            label_weight=beta, ridge=RIDGE, init_max_iter=20, max_iter=passes, tol=0,
            random_state=0,
        )  # fmt: skip

    make(1).set_params(n_atoms=8, n_nonzero_coefs=2).fit(X[:128], y[:128])

    def call() -> Any:
        model = make(passes).fit(X, y)
        T = model.coef_[model.atom_classes_]
        return _label_result(model.predict, model.components_, model.coef_, T, (alpha, beta))

    return call


def dictlearn_lcksvd(kind: str, passes: int) -> Call:
    """Let dictlearn learn; its start refuses more nonzeros than a class has atoms, so use these."""
    from dictlearn.classification import LCDLClassifier

    class Clipped(LCDLClassifier):
        def _train_block(self, Xc: Any, seed: Any) -> Any:
            asked, self.n_nonzero_coefs = self.n_nonzero_coefs, seed.shape[1]
            try:
                return super()._train_block(Xc, seed)
            finally:
                self.n_nonzero_coefs = asked

    X, y, *_ = faces()
    alpha, beta = WEIGHTS[kind]  # its alpha is the labels' weight, its beta the consistency's

    def call() -> Any:
        model = Clipped(
            ATOMS, alpha=beta, beta=alpha, fit_algorithm="aksvd", n_nonzero_coefs=NONZEROS,
            max_iter=passes, init_method="trained", init_iter=20, ridge_gamma=RIDGE,
            random_state=0,
        ).fit(X, y)  # fmt: skip
        parts = (model.dictionary_, model.classifier_, model.consistency_)
        return _label_result(model.predict, *parts, (alpha, beta))

    return call


def our_dksvd(passes: int) -> Call:
    from kernelatoms import DKSVDClassifier

    X, y, *_ = faces()

    def make(passes: int) -> Any:
        return DKSVDClassifier(
            N_PEOPLE * ATOMS, n_nonzero_coefs=NONZEROS, label_weight=1.0, ridge=RIDGE,
            init_max_iter=20, max_iter=passes, tol=0, random_state=0,
        )  # fmt: skip

    make(1).set_params(n_atoms=8, n_nonzero_coefs=2).fit(X[:128], y[:128])

    def call() -> Any:
        model = make(passes).fit(X, y)
        return _label_result(model.predict, model.components_, model.coef_, None, (0.0, 1.0))

    return call


def dictlearn_dksvd(passes: int) -> Call:
    from dictlearn.classification import DDLClassifier

    X, y, *_ = faces()

    def call() -> Any:
        model = DDLClassifier(
            N_PEOPLE * ATOMS, alpha=1.0, fit_algorithm="aksvd", n_nonzero_coefs=NONZEROS,
            max_iter=passes, init_method="trained", init_iter=20, ridge_gamma=RIDGE,
            random_state=0,
        ).fit(X, y)  # fmt: skip
        return _label_result(model.predict, model.dictionary_, model.classifier_, None, (0.0, 1.0))

    return call


# FDDL ---------------------------------------------------------------------------------------------


def our_fddl(data: str, atoms: int, passes: int) -> Call:
    from kernelatoms import FDDLClassifier

    X, y, rows, truth = faces() if data == "faces" else digits(7291)

    def make(atoms: int, passes: int) -> Any:
        return FDDLClassifier(
            atoms, l1_weight=2 * LAMBDA, fisher_weight=FISHER, max_iter=passes, tol=0,
            random_state=0,
        )  # fmt: skip

    make(1, 1).fit(X[::8], y[::8])

    def call() -> Any:
        model = make(atoms, passes).fit(X, y)
        return lambda: [model.objective_[-1], 100 * model.score(rows, truth)]

    return call


def dictol_fddl(data: str, atoms: int, passes: int) -> Call:
    """DICTOL's Python FDDL: LRSDL without a shared dictionary; its loss is half of eq. (7)."""
    from dictol.LRSDL import LRSDL

    X, y, rows, truth = faces() if data == "faces" else digits(7291)

    def call() -> Any:
        model = LRSDL(lambd=LAMBDA, lambd2=FISHER, k=atoms, k0=0)
        model.fit(np.ascontiguousarray(X.T), y + 1, iterations=passes)
        right = model.predict(np.ascontiguousarray(rows.T)) == truth + 1
        return lambda: [2 * float(model.loss()), 100 * float(np.mean(right))]

    return call


def proximal_steps(atoms: int, steps: int, through: str) -> Call:
    """One coding step of FDDL on USPS by accelerated proximal steps, from nothing.

    ``through`` the Gram matrix, as eq. (7) is usually written, or through the atoms.
    """
    from kernelatoms.estimators.classifiers.fddl import _class_centres
    from kernelatoms.learning.fddl import CSR, Labelled, Weights, objective

    X, y, *_ = digits(7291)
    owners = np.repeat(np.arange(10), atoms)
    data = Labelled(X, y, owners)
    D = _class_centres(data, np.full(10, atoms), np.random.RandomState(0))
    weights = Weights(2 * LAMBDA, FISHER, 1.0)
    blocks, sizes = [np.flatnonzero(owners == c) for c in range(10)], np.bincount(y)
    own = [slice(block[0], block[-1] + 1) for block in blocks]
    members = [slice(start, start + size) for start, size in
               zip(np.cumsum(sizes) - sizes, sizes, strict=True)]  # fmt: skip
    gram = D @ D.T
    gram[owners[:, None] == owners] *= 2
    corr = X @ D.T
    corr[y[:, None] == owners] *= 2
    largest = np.linalg.norm(D, 2) ** 2 + max(np.linalg.norm(D[part], 2) ** 2 for part in own)
    step = 1 / (2 * largest + 4 * FISHER)

    def gradient(Z: Any) -> Any:
        if through == "gram":
            out = Z @ gram - corr
        else:
            parts = [Z[:, part] @ D[part] for part in own]
            whole, out = sum(parts) - X, np.empty_like(Z)
            for c, part in enumerate(own):
                left = whole + parts[c]
                left[members[c]] -= X[members[c]]
                out[:, part] = left @ D[part].T
        mean = Z.mean(axis=0)
        for rows in members:
            out[rows] += FISHER * (2 * Z[rows] - 2 * Z[rows].mean(axis=0) + mean)
        return 2 * out

    def call() -> Any:
        G = Z = np.zeros((len(X), len(D)))
        t = 1.0
        for _ in range(steps):
            W = Z - step * gradient(Z)
            new = np.sign(W) * np.maximum(np.abs(W) - step * weights.l1, 0)
            t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
            Z, G, t = new + (t - 1) / t_new * (new - G), new, t_new
        return lambda: [objective(data, D, CSR(G), weights), len(np.flatnonzero(G)) / len(X)]

    return call


def exact_codes(atoms: int) -> Call:
    """Take the same coding step as the library does."""
    from kernelatoms.estimators.classifiers.fddl import _class_centres
    from kernelatoms.learning.fddl import CSR, Labelled, Weights, code_all, objective

    X, y, *_ = digits(7291)
    owners = np.repeat(np.arange(10), atoms)
    data, weights = Labelled(X, y, owners), Weights(2 * LAMBDA, FISHER, 1.0)
    D = _class_centres(data, np.full(10, atoms), np.random.RandomState(0))

    def call() -> Any:
        codes, _ = code_all(data, D, CSR((len(X), len(D))), weights)
        return lambda: [objective(data, D, codes, weights), codes.nnz / len(X)]

    return call


def supervised_tables(rounds: int) -> None:
    """Print all tables."""
    head = "| method | seconds | objective | accuracy, % | ratio |\n" + "|---" * 5 + "|"
    print("\n## LC-KSVD2 and D-KSVD, 570 atoms, 30 nonzeros, 20 + 50 passes, Extended Yale B\n")
    print(head)
    for kind in WEIGHTS:
        case = {"kind": kind, "passes": 50}
        _print_rows([
            Contender(f"ours, {kind} weights", "our_lcksvd", case, once=True),
            Contender(f"ours, {kind} weights, 10 passes", "our_lcksvd", {**case, "passes": 10},
                      once=True),
            Contender(f"dictlearn, {kind} weights", "dictlearn_lcksvd", case, once=True),
        ], rounds)  # fmt: skip
    _print_rows([
        Contender("ours, D-KSVD", "our_dksvd", {"passes": 50}, once=True),
        Contender("dictlearn, D-KSVD", "dictlearn_dksvd", {"passes": 50}, once=True),
    ], rounds)  # fmt: skip
    print("\n## FDDL, 15 atoms a person, 5 passes, Extended Yale B; DICTOL's own start\n")
    print(head)
    case = {"data": "faces", "atoms": ATOMS, "passes": 5}
    _print_rows([
        Contender("ours", "our_fddl", case, once=True),
        Contender("ours, 20 passes", "our_fddl", {**case, "passes": 20}, once=True),
        Contender("DICTOL (Python)", "dictol_fddl", case, once=True),
    ], rounds)  # fmt: skip
    print("\n## FDDL on USPS, 300 atoms per class\n")
    print("| work | seconds | objective | accuracy, % or nonzeros per row | ratio |\n" + "|---" * 5
          + "|")  # fmt: skip
    case = {"data": "digits", "atoms": 300, "passes": 5}
    _print_rows([Contender("5 passes, whole fit", "our_fddl", case, once=True)], 1)
    _print_rows([
        Contender("one coding step from nothing", "exact_codes", {"atoms": 300}, once=True),
        Contender("20 proximal steps through the atoms", "proximal_steps",
                  {"atoms": 300, "steps": 20, "through": "atoms"}, once=True),
        Contender("20 proximal steps through the Gram matrix", "proximal_steps",
                  {"atoms": 300, "steps": 20, "through": "gram"}, once=True),
        Contender("100 proximal steps through the atoms", "proximal_steps",
                  {"atoms": 300, "steps": 100, "through": "atoms"}, once=True),
    ], 1)  # fmt: skip


def _print_rows(contenders: list[Contender], rounds: int) -> None:
    got = compare(contenders, min(rounds, 3), 1, module=MODULE)
    first = got[contenders[0].label].seconds
    for label, result in got.items():
        reached, last = result.value
        print(f"| {label} | {result.seconds:.2f} | {reached:.4f} | {last:.2f} "
              f"| {result.seconds / first:.1f}x |", flush=True)  # fmt: skip
