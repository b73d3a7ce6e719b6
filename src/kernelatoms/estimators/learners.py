"""Dictionary learners: ``MOD`` and ``KSVD``."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state

from kernelatoms.estimators.checks import (
    check_count,
    check_dictionary,
    check_real,
    validate_training,
)
from kernelatoms.estimators.dictionary_learner import GreedyLearner
from kernelatoms.learning.atoms import atoms_from_rows, replace_unused, unit_rows
from kernelatoms.learning.ksvd import ksvd_update
from kernelatoms.learning.mod import best_dictionary, mod_update
from kernelatoms.learning.moments import Moments
from kernelatoms.pursuit import omp
from kernelatoms.space.problem import CodingProblem, LinearProblem

Array = NDArray[Any]


class LinearLearner(GreedyLearner):
    """Learners whose atoms are signals like the others."""

    def __init__(
        self,
        n_atoms: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        selection: str = "omp",
        max_iter: int = 20,
        tol: float = 1e-4,
        dict_init: Any = None,
        warm_start: bool = False,
        sparse_output: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_nonzero_coefs = n_nonzero_coefs
        self.selection = selection
        self.max_iter = max_iter
        self.tol = tol
        self.dict_init = dict_init
        self.warm_start = warm_start
        self.sparse_output = sparse_output
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a dictionary for the rows of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Signals; those with missing values (NaN) are left out, with a warning.
        y : ignored

        Returns
        -------
        self
        """
        self._check_loop()
        warm = self.warm_start and hasattr(self, "components_")
        X = validate_training(self, X)
        self._run_passes(X, X, self._start(X, warm), _linear_attributes)
        return self

    def _problem(self, X: Array) -> CodingProblem:
        return LinearProblem(X, self.components_.astype(X.dtype, copy=False))

    @classmethod
    def _joint_problem(cls, learners: Sequence[Any], X: Array) -> CodingProblem:
        """Return the problem of coding rows over the atoms of several learners at once."""
        atoms = np.concatenate([learner.components_ for learner in learners])
        return LinearProblem(X, atoms.astype(X.dtype, copy=False))

    def _start(self, X: Array, warm: bool) -> Array:
        """Settle the sizes and return the dictionary to start from."""
        n_samples, n_features = X.shape
        given = self.components_ if warm else self.dict_init
        if given is not None:
            name = "dict_init" if not warm else "components_ (warm_start)"
            start = unit_rows(check_dictionary(name, given, n_features, X.dtype))
            if self.n_atoms is not None and check_count("n_atoms", self.n_atoms) != len(start):
                raise ValueError(
                    f"n_atoms={self.n_atoms}, but {name} has {len(start)} atoms; leave n_atoms "
                    "out or make them agree."
                )
        else:
            n_atoms = self._choose_n_atoms(n_samples, 2 * n_features)
            start = atoms_from_rows(X, n_atoms, check_random_state(self.random_state))
        self.n_nonzero_coefs_ = self._choose_n_nonzero(n_features, min(len(start), n_features))
        return start


def _linear_attributes(dictionary: Array, objective: Array) -> dict[str, Any]:
    return {
        "components_": dictionary,
        "n_atoms_": len(dictionary),
        "objective_": objective,
        "n_iter_": len(objective),
    }


class KSVD(LinearLearner):
    """Learn a dictionary by K-SVD: sparse coding, then every atom with its coefficients in turn.

    Minimises |X - W D|^2 over codes W with few nonzeros a row and unit-norm atoms D (Aharon, Elad
    and Bruckstein, 2006). Atoms that no signal uses become the worst represented signals.

    Parameters
    ----------
    n_atoms : int, optional
        Size of the dictionary; by default twice the features, or all rows if there are fewer.
    n_nonzero_coefs : int, optional
        The most atoms a signal uses; by default a tenth of the features, at least 1.
    selection : {"omp", "ols"}, default="omp"
        How the pursuit picks atoms: by correlation (OMP), or by residual decrease (orthogonal
        least squares), which takes 10 to 20% longer and leaves smaller residuals.
    max_iter : int, default=20
        The most passes of coding and updating.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    dict_init : array of shape (n_atoms, n_features), optional
        Atoms to start from (scaled to unit norm); by default random rows of the data.
    warm_start : bool, default=False
        Start ``fit`` from the dictionary of the last one.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    random_state : int, RandomState or None
        Seeds the start.

    Attributes
    ----------
    components_ : array of shape (n_atoms_, n_features)
        The atoms of the best pass, at unit norm.
    objective_ : array of shape (n_iter_,)
        The lowest |X - W D|^2, summed over all signals, reached up to every pass.
    n_atoms_, n_nonzero_coefs_, n_iter_ : int
        What the data allowed, and the passes run.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import KSVD
    >>> X = np.random.default_rng(0).normal(size=(200, 16))
    >>> ksvd = KSVD(n_atoms=32, n_nonzero_coefs=4, max_iter=5, random_state=0).fit(X)
    >>> codes = ksvd.transform(X)
    >>> codes.shape, codes.nnz
    ((200, 32), 800)
    """

    _update = staticmethod(ksvd_update)


class MOD(LinearLearner):
    """Learn a dictionary by MOD: sparse coding, then the least-squares dictionary for the codes.

    Minimises |X - W D|^2 over codes W with few nonzeros a row and unit-norm atoms D (Engan, Aase
    and Husoy, 1999). The update needs sums over rows only, so ``partial_fit`` learns from data
    that comes in batches. Atoms that no signal uses become the worst represented signals.

    Parameters
    ----------
    n_atoms : int, optional
        Size of the dictionary; by default twice the features, or all rows if there are fewer.
    n_nonzero_coefs : int, optional
        The most atoms a signal uses; by default a tenth of the features, at least 1.
    selection : {"omp", "ols"}, default="omp"
        How the pursuit picks atoms: by correlation (OMP), or by residual decrease (orthogonal
        least squares), which takes 10 to 20% longer and leaves smaller residuals.
    max_iter : int, default=20
        The most passes of coding and updating.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    dict_init : array of shape (n_atoms, n_features), optional
        Atoms to start from (scaled to unit norm); by default random rows of the data.
    warm_start : bool, default=False
        Start ``fit`` from the dictionary of the last one.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    random_state : int, RandomState or None
        Seeds the start.
    forget : float, default=1.0
        Weight of the past at every ``partial_fit``, above 0 and at most 1: below 1, sums from
        early, poor codes fade.

    Attributes
    ----------
    components_ : array of shape (n_atoms_, n_features)
        The atoms of the best pass, at unit norm.
    objective_ : array of shape (n_iter_,)
        The lowest |X - W D|^2, summed over all signals, reached up to every pass.
    n_atoms_, n_nonzero_coefs_, n_iter_ : int
        What the data allowed, and the passes run.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelatoms import MOD
    >>> X = np.random.default_rng(0).normal(size=(200, 16))
    >>> mod = MOD(n_atoms=32, n_nonzero_coefs=4, random_state=0)
    >>> for batch in np.split(X, 4):
    ...     mod = mod.partial_fit(batch)
    >>> mod.components_.shape
    (32, 16)
    """

    _update = staticmethod(mod_update)

    def __init__(
        self,
        n_atoms: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        selection: str = "omp",
        max_iter: int = 20,
        tol: float = 1e-4,
        dict_init: Any = None,
        warm_start: bool = False,
        sparse_output: bool = True,
        forget: float = 1.0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_atoms,
            n_nonzero_coefs=n_nonzero_coefs,
            selection=selection,
            max_iter=max_iter,
            tol=tol,
            dict_init=dict_init,
            warm_start=warm_start,
            sparse_output=sparse_output,
            random_state=random_state,
        )
        self.forget = forget

    def _remember(self, X: Array) -> None:
        """Keep the sums of X, so that ``partial_fit`` adds to them."""
        self.moments_ = Moments.of(X, self._encode(X))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in a batch: code it, add its sums to the past ones, solve for the dictionary.

        The first batch chooses the starting atoms, so it needs at least ``n_atoms`` rows; after
        ``fit``, batches add to the sums of its rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            A batch of signals; those with missing values (NaN) are left out, with a warning.
        y : ignored

        Returns
        -------
        self
        """
        self._check_loop()
        forget = check_real("forget", self.forget, low=0, high=1, low_open=True)
        first = not hasattr(self, "components_")
        X = validate_training(self, X, reset=first)
        if first:
            dictionary = self._start(X, warm=False)
        else:
            dictionary = self.components_.astype(X.dtype, copy=False)
        problem = LinearProblem(X, dictionary)
        codes = omp(problem, self.n_nonzero_coefs_, selection=self.selection)
        batch = Moments.of(X, codes)
        past: Moments | None = getattr(self, "moments_", None)
        moments = batch if past is None else past.scaled(forget) + batch
        dictionary, _, moments = best_dictionary(moments, dictionary)
        replace_unused(dictionary, np.diagonal(moments.gram) > 0, X, codes.error)
        self.moments_ = moments
        objective = np.array([moments.objective(dictionary)])
        self.__dict__.update(_linear_attributes(dictionary, objective))
        return self
