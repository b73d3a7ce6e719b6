"""``DKSVDClassifier`` and ``LCKSVDClassifier``: K-SVD on signals that carry their labels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.engine import Array
from kernelatoms.estimators.classifiers.supervised import LabelDictionary, SupervisedDictionary
from kernelatoms.estimators.validation import check_real, refuse_unused


class DKSVDClassifier(LabelDictionary, SupervisedDictionary):
    """Learn atoms and a linear decision together: D-KSVD.

    Minimises |X - D G|^2 + beta |H - Theta G|^2 over atoms D, codes G of few nonzeros and a linear
    map Theta, where H marks the class of every signal (Q. Zhang and B. Li, 2010; signals are
    columns here, as in the papers). A row is coded over D and given the class with the largest
    entry of Theta g. Atoms start as the classes' own, by K-SVD. After a ``KernelLinearizer`` it
    learns under a kernel (LKDL).

    Parameters
    ----------
    n_atoms : int, optional
        Of all classes together, in proportion to their rows, at least one each; by default twice
        the features, or all rows if there are fewer.
    n_nonzero_coefs : int, optional
        The most atoms a signal uses; by default a tenth of the features, at least 1.
    label_weight : float, default=1.0
        beta, in units of the signals' mean energy. With 0 the decision is a ridge regression on
        the codes of plain K-SVD.
    ridge : float, default=0.01
        Weight of |Theta|^2 in the ridge regression that Theta starts from, in the same units.
    init_max_iter : int, default=20
        The most passes over each class alone, before the classes come together.
    max_iter : int, default=5
        The most passes of coding and updating over all classes together.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    class_weight : dict, "balanced" or None, default=None
        How many rows each row of a class counts as, by its label (1 by default); "balanced" lets
        all classes count the same. Atoms are shared out by rows.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    calibrate : bool, default=False
        Whether to learn how sure answers are, from the rows left out of three more fits.
    random_state : int, RandomState or None
        Seeds the start.

    Attributes
    ----------
    classes_ : array
        The labels.
    components_ : array of shape (n_atoms_, n_features)
        The atoms of the best pass, at unit norm, class after class.
    atom_classes_ : array of shape (n_atoms_,)
        The number of the class that each atom started from.
    coef_ : array of shape (n_classes, n_atoms_)
        Theta.
    objective_ : array of shape (n_iter_,)
        What every pass reached, both terms, over all signals. With greedy codes it may rise.
    best_pass_ : int
        The pass of the lowest objective, counted from 0, which counts.
    n_atoms_, n_nonzero_coefs_, n_iter_ : int
        What the data allowed, and the passes run.
    inverse_temperature_, label_smoothing_ : float
        With ``calibrate=True``: what makes probabilities of scores (see ``predict_proba``).

    Notes
    -----
    ``predict_proba`` without ``calibrate``: the scores of a row regress on marks of its class, so
    they estimate probabilities already; shares are the numbers nearest to them that are at least 0
    and add up to 1. With it, a softmax of the scores.

    The decision is linear in the code: a row and its negative get opposite scores. Rows should mean
    the same class at any length but not with the other sign: images and spectra at unit norm,
    virtual samples of a kernel, rather than standardised columns. Scores that differ by less than
    10 eps count as equal; ties go to the class that comes first.

    See Also
    --------
    LCKSVDClassifier : The same with codes that resemble each other within a class.

    Examples
    --------
    >>> from kernelatoms import DKSVDClassifier
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> X, y = load_digits(return_X_y=True)
    >>> dksvd = DKSVDClassifier(n_atoms=200, n_nonzero_coefs=8, random_state=0)
    >>> model = make_pipeline(Normalizer(), dksvd).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    def __init__(
        self,
        n_atoms: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        label_weight: float = 1.0,
        ridge: float = 0.01,
        init_max_iter: int = 20,
        max_iter: int = 5,
        tol: float = 1e-4,
        class_weight: Any = None,
        sparse_output: bool = True,
        calibrate: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_nonzero_coefs = n_nonzero_coefs
        self.label_weight = label_weight
        self.ridge = ridge
        self.init_max_iter = init_max_iter
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.sparse_output = sparse_output
        self.calibrate = calibrate
        self.random_state = random_state

    def _class_weights(self, counts: NDArray[np.intp]) -> Array:
        return np.full(len(counts), float(self.label_weight))

    def _map_decides(self, weights: Array) -> bool:
        return bool(weights.min() > 0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("label_weight", self.label_weight, low=0)


class LCKSVDClassifier(LabelDictionary, SupervisedDictionary):
    """Learn atoms whose codes tell the class, and a linear decision: label consistent K-SVD.

    Minimises over atoms D, codes G of few nonzeros and linear maps T and Theta (Z. Jiang, Z. Lin
    and L. S. Davis, 2013; eqs. (8) and (9) of the LKDL paper, signals as columns)

        |X - D G|^2 + alpha |Q - T G|^2                                     (variant 1)
        |X - D G|^2 + alpha |Q - T G|^2 + beta |H - Theta G|^2              (variant 2)

    H marks the class of every signal, Q all atoms of its class. Variant 1 finds Theta afterwards,
    by ridge regression on the codes. Start and answers are those of ``DKSVDClassifier``, whose
    Notes hold here, too. After a ``KernelLinearizer`` it learns under a kernel (LKDL).

    Parameters
    ----------
    n_atoms : int, optional
        Of all classes together, in proportion to their rows, at least one each; by default twice
        the features, or all rows if there are fewer.
    n_nonzero_coefs : int, optional
        The most atoms a signal uses; by default a tenth of the features, at least 1.
    variant : {1, 2}, default=2
        Whether Theta is found after the atoms or with them.
    consistency_weight : float, default=0.1
        alpha, in units of the signals' mean energy. With 0, variant 2 is D-KSVD.
    label_weight : float, default=0.1
        beta, likewise, in variant 2. With 0, variant 2 is variant 1.
    ridge : float, default=0.01
        Weight of |Theta|^2 in the ridge regressions that maps start from, and of variant 1's
        decision; in the same units.
    init_max_iter : int, default=20
        The most passes over each class alone, before the classes come together.
    max_iter : int, default=5
        The most passes of coding and updating over all classes together.
    tol : float, default=1e-4
        Stop when three passes together lower the objective by no more than this share of it.
    class_weight : dict, "balanced" or None, default=None
        How many rows each row of a class counts as, by its label (1 by default); "balanced" lets
        all classes count the same. Atoms are shared out by rows.
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR array or a dense one.
    calibrate : bool, default=False
        Whether to learn how sure answers are, from the rows left out of three more fits.
    random_state : int, RandomState or None
        Seeds the start.

    Attributes
    ----------
    classes_ : array
        The labels.
    components_ : array of shape (n_atoms_, n_features)
        The atoms of the best pass, at unit norm, class after class.
    atom_classes_ : array of shape (n_atoms_,)
        The number of the class that each atom belongs to.
    coef_ : array of shape (n_classes, n_atoms_)
        Theta. In variant 2, T has the same rows: that of class c once for every atom of c.
    objective_ : array of shape (n_iter_,)
        What every pass reached, all terms, over all signals. With greedy codes it may rise.
    best_pass_ : int
        The pass of the lowest objective, counted from 0, which counts.
    n_atoms_, n_nonzero_coefs_, n_iter_ : int
        What the data allowed, and the passes run.
    inverse_temperature_, label_smoothing_ : float
        With ``calibrate=True``: what makes probabilities of scores (see ``predict_proba``).

    Notes
    -----
    Rows of Q for atoms of one class are equal, and so are those of T; with n_c atoms of class c,
    the terms together are a sum over classes of (alpha n_c + beta) |h_c - theta_c G|^2. So LC-KSVD
    is D-KSVD with a weight of its own for every class (I. Kviatkovsky, M. Gabel, E. Rivlin and I.
    Shimshoni, 2017), and is computed so: from one row of marks per class instead of one per atom.

    See Also
    --------
    DKSVDClassifier : Without the second term.

    Examples
    --------
    >>> from kernelatoms import LCKSVDClassifier, make_lkdl
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> learner = LCKSVDClassifier(n_atoms=200, n_nonzero_coefs=8, random_state=0)
    >>> model = make_lkdl(learner, "rbf", gamma=0.5, unit_rows=True, random_state=0)
    >>> model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9
    True
    """

    def __init__(
        self,
        n_atoms: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        variant: int = 2,
        consistency_weight: float = 0.1,
        label_weight: float = 0.1,
        ridge: float = 0.01,
        init_max_iter: int = 20,
        max_iter: int = 5,
        tol: float = 1e-4,
        class_weight: Any = None,
        sparse_output: bool = True,
        calibrate: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_nonzero_coefs = n_nonzero_coefs
        self.variant = variant
        self.consistency_weight = consistency_weight
        self.label_weight = label_weight
        self.ridge = ridge
        self.init_max_iter = init_max_iter
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.sparse_output = sparse_output
        self.calibrate = calibrate
        self.random_state = random_state

    def _class_weights(self, counts: NDArray[np.intp]) -> Array:
        label_weight = float(self.label_weight) if self.variant == 2 else 0.0
        return float(self.consistency_weight) * counts + label_weight

    def _map_decides(self, weights: Array) -> bool:
        return self.variant == 2 and self.label_weight > 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.variant, bool) or self.variant not in (1, 2):
            raise ValueError(f"variant must be 1 or 2, got {self.variant!r}.")
        check_real("consistency_weight", self.consistency_weight, low=0)
        check_real("label_weight", self.label_weight, low=0)

    def _refuse_unused(self) -> None:
        if self.variant == 1 and self.label_weight:
            needs = "belongs to variant=2, not to variant 1"
            refuse_unused(type(self), {"label_weight": self.label_weight}, needs)
