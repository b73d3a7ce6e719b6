"""``Explanation``: why a row was given its class; ``explain``, for any model of the library."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelatoms.engine import Array
from kernelatoms.estimators.devices.border import by_rows, on_cpu
from kernelatoms.estimators.devices.use_device import on_the_cpu
from kernelatoms.estimators.inspection.pipelines import called, flat_steps

# A table of atoms ends here, and says how many more there are.
_ATOMS_SHOWN = 10


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a classifier gave one row its class: the atoms it used, and what each class leaves.

    Row and atoms are as the classifier sees them: scaled, in feature space, projected. ``print``
    shows it in a few lines.

    Parameters
    ----------
    label : object
        The answer, an entry of ``classes``.
    classes : array of shape (n_classes,)
        The labels.
    scores : array of shape (n_classes,)
        How well each class fits: the largest is the answer's, the first of equal ones.
    atoms : array of shape (n_used,)
        Numbers of the atoms in the code, the largest |coefficient| first: counted from 0 through
        all classes, or rows of ``dictionary_`` where training rows are the dictionary.
    coefficients : array of shape (n_used,)
        Their coefficients, none of them 0.
    owners : array of shape (n_used,)
        The class that each belongs to, as a number of ``classes``.
    residuals : array of shape (n_classes,), optional
        What each class's part of the code, or the code over each class's dictionary, leaves of the
        row, a squared norm; less k(x, x), where ``energy`` is None. Of robust codes, what is left
        of the entries that they trust.
    residual : float, optional
        What the code as a whole leaves, |x - D w|^2; None where ``energy`` is.
    energy : float, optional
        k(x, x), the squared norm of the row; None where it is not known (precomputed kernels).
    contributions : array of shape (n_used,), optional
        What each atom adds to the answer's score, where scores are linear in the code.
    neighbors : array of shape (n_neighbors,), optional
        Numbers of the training rows that voted, the nearest first, where such decide.
    neighbor_owners : array of shape (n_neighbors,), optional
        Their classes, as numbers of ``classes``.

    Examples
    --------
    >>> from kernelatoms import ClassDictionaryClassifier, KSVD
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ClassDictionaryClassifier(KSVD(20, n_nonzero_coefs=3), random_state=0)
    >>> why = model.fit(X[:1000], y[:1000]).explain(X[1000:1001])[0]
    >>> print(why.label, len(why.atoms))
    1 3
    >>> why.residual == why.residuals.tolist()[1]
    True
    """

    label: Any
    classes: Array
    scores: Array
    atoms: NDArray[np.intp]
    coefficients: Array
    owners: NDArray[np.intp]
    residuals: Array | None = None
    residual: float | None = None
    energy: float | None = None
    contributions: Array | None = None
    neighbors: NDArray[np.integer] | None = None
    neighbor_owners: NDArray[np.integer] | None = None

    def code_energies(self) -> Array:
        """Return each class's share of the code's squared norm; 0 for all where no atom is used.

        Returns
        -------
        shares : array of shape (n_classes,)
        """
        squares = self.coefficients.astype(np.float64) ** 2
        shares: Array = np.bincount(self.owners, squares, minlength=len(self.classes))
        return shares / (shares.sum() or 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain Python values, for JSON: one entry per class, one per atom.

        Returns
        -------
        dict
            ``label``, ``energy``, ``residual``, ``classes``, ``atoms``; of votes ``neighbors``.
        """
        names, shares = self.classes.tolist(), self.code_energies()
        left = [None] * len(names) if self.residuals is None else self.residuals.tolist()
        each = zip(names, self.scores.tolist(), left, shares.tolist(), strict=True)
        added = [None] * len(self.atoms)
        if self.contributions is not None:
            added = self.contributions.tolist()
        used = zip(
            self.atoms.tolist(), self.owners.tolist(), self.coefficients.tolist(), added,
            strict=True,
        )  # fmt: skip
        found: dict[str, Any] = {
            "label": _plain(self.label),
            "energy": self.energy,
            "residual": self.residual,
            "classes": [
                {"label": name, "score": score, "residual": residual, "code_energy": share}
                for name, score, residual, share in each
            ],
            "atoms": [
                {"atom": atom, "label": names[owner], "coefficient": value, "contribution": more}
                for atom, owner, value, more in used
            ],
        }
        if self.neighbors is not None and self.neighbor_owners is not None:
            near = zip(self.neighbors.tolist(), self.neighbor_owners.tolist(), strict=True)
            found["neighbors"] = [{"row": row, "label": names[owner]} for row, owner in near]
        return found

    def __str__(self) -> str:
        best, *others = np.argsort(-self.scores, kind="stable")[:2].tolist()
        lines = [
            f"Answer: {self._class_line(best)}",
            *(f"Next best: {self._class_line(c)}" for c in others),
        ]
        return "\n".join([*lines, *self._left(best, others), *self._near(), *self._table()])

    def _class_line(self, c: int) -> str:
        """Return a class with its score, what it leaves of the row and its part of the code."""
        words, shares = [f"{self._name(c)} (score {self.scores[c]:.4g})"], self.code_energies()
        if self.residuals is not None and self.energy is not None and self.energy > 0:
            words.append(f"leaves {_percent(self.residuals[c] / self.energy)} of the row's energy")
        if np.count_nonzero(shares) > 1:
            words.append(f"has {_percent(shares[c])} of the code's energy")
        return ", ".join(words)

    def _left(self, best: int, others: list[int]) -> list[str]:
        """Say what all atoms leave; where k(x, x) is not known, which class leaves less."""
        if self.energy is None:
            if self.residuals is None or not others:
                return []
            apart = float(self.residuals[others[0]] - self.residuals[best])
            than = "more" if apart >= 0 else "less"
            return [
                f"{self._name(others[0])} leaves {abs(apart):.4g} {than} of the row than "
                f"{self._name(best)}; how much there is, k(x, x), is not known"
            ]
        if not self.energy > 0:
            return ["The row is 0: there is nothing to tell classes by"]
        if self.residual is None or np.count_nonzero(self.code_energies()) == 1:
            return []
        return [f"All atoms together leave {_percent(self.residual / self.energy)}"]

    def _near(self) -> list[str]:
        """Name the training rows that voted."""
        if self.neighbors is None or self.neighbor_owners is None or not len(self.neighbors):
            return []
        near = zip(self.neighbors.tolist(), self.neighbor_owners.tolist(), strict=True)
        named = [f"{row} ({self._name(owner)})" for row, owner in near]
        more = f" and {len(named) - _ATOMS_SHOWN} more" if len(named) > _ATOMS_SHOWN else ""
        return [f"Nearest training rows, from 0: {', '.join(named[:_ATOMS_SHOWN])}{more}"]

    def _table(self) -> list[str]:
        """Return the most used atoms, one per line."""
        if not len(self.atoms):
            return ["No atom is used"]
        columns = [
            ["atom", *map(str, self.atoms[:_ATOMS_SHOWN].tolist())],
            ["class", *(self._name(c) for c in self.owners[:_ATOMS_SHOWN].tolist())],
            ["coefficient", *(f"{value:+.4g}" for value in self.coefficients[:_ATOMS_SHOWN])],
        ]
        if self.contributions is not None:
            values = (f"{value:+.4g}" for value in self.contributions[:_ATOMS_SHOWN])
            columns.append(["contribution", *values])
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join(f"{entry:>{width}}" for entry, width in zip(line, widths, strict=True))
            for line in zip(*columns, strict=True)
        ]
        more = len(self.atoms) - _ATOMS_SHOWN
        if more > 0:
            lines.append(f"and {more:,} {'atom' if more == 1 else 'atoms'} more")
        return lines

    def _name(self, c: int) -> str:
        """Return a class as written in a sentence: texts in quotation marks, in one line."""
        label = _plain(self.classes[c])
        return repr(label) if isinstance(label, str) else str(label)


def explain_codes(
    codes: scipy.sparse.csr_array,
    owners: Any,
    classes: Array,
    scores: Array,
    *,
    residuals: Array | None = None,
    residual: Array | None = None,
    energies: Array | None = None,
    score_weights: Array | None = None,
) -> list[Explanation]:
    """Return an ``Explanation`` for every row of a classifier's codes (n_samples, n_atoms).

    ``owners`` are the atoms' classes, as numbers of ``classes``. Scores and residuals (n_samples,
    n_classes), residual and energies (n_samples,) become the entries of an explanation. Where
    scores are linear in the code, ``score_weights`` (n_classes, n_atoms) are what an atom of
    coefficient 1 adds to each.
    """
    owners, out = np.asarray(owners, np.intp), []
    chosen = scores.argmax(axis=1)
    for i, best in enumerate(chosen.tolist()):
        row = slice(codes.indptr[i], codes.indptr[i + 1])
        atoms, values = codes.indices[row].astype(np.intp), codes.data[row]
        # The largest first, of equal ones the first atom; what is stored as 0 is not used.
        order = np.lexsort((atoms, -np.abs(values)))[: np.count_nonzero(values)]
        atoms, values = atoms[order], values[order]
        added = None if score_weights is None else score_weights[best, atoms] * values
        out.append(
            Explanation(
                classes[best], classes, scores[i], atoms, values, owners[atoms],
                residuals=None if residuals is None else residuals[i],
                residual=None if residual is None else float(residual[i]),
                energy=None if energies is None else float(energies[i]),
                contributions=added,
            )
        )  # fmt: skip
    return out


def explain(model: Any, X: Any) -> list[Explanation]:
    """Say for every row why a fitted classifier gives it its class.

    Parameters
    ----------
    model : estimator
        A fitted classifier of the library, or a ``Pipeline`` that ends in one.
    X : array or data frame of shape (n_samples, n_features)
        Rows, as the model takes them.

    Returns
    -------
    list of Explanation
        One a row.

    Examples
    --------
    >>> from kernelatoms import ClassDictionaryClassifier, KernelLinearizer, KSVD, explain
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(
    ...     StandardScaler(),
    ...     KernelLinearizer("rbf", gamma=0.5, random_state=0),
    ...     ClassDictionaryClassifier(KSVD(5, n_nonzero_coefs=2), random_state=0),
    ... )
    >>> why = explain(model.fit(X, y), X[:1])[0]
    >>> bool(why.label == y[0])
    True
    """
    X = on_cpu("explain", model=model, X=X)[1]
    *before, last = flat_steps(model) or [model]
    if not callable(getattr(last, "explain", None)) or isinstance(last, type):
        raise TypeError(
            "model must be a fitted classifier of kernelatoms (ClassDictionaryClassifier, "
            "CRCClassifier or SRCClassifier, say), or a Pipeline that ends in one, got "
            f"{called(model, last)}"
        )
    with on_the_cpu():
        for step in before:
            X = step.transform(X)
        explanations: list[Explanation] = last.explain(X)
    return explanations


def explain_on_cpu(model: Any, X: Any) -> list[Explanation]:
    """Return the explanations by a classifier (``_explain``) of rows of the CPU."""
    name = type(model).__name__
    X = on_cpu(f"{name}.explain", **{name: model, "X": X})[1]
    with on_the_cpu():
        explanations: list[Explanation] = by_rows(model._explain, X, model)
    return explanations


def _plain(label: Any) -> Any:
    """Return a label as a Python value."""
    return label.item() if isinstance(label, np.generic) else label


def _percent(share: float) -> str:
    """Return a share as a percentage; 0 and 100 only if they are just that."""
    text = f"{100 * share:.1f}%"
    if text == "0.0%" and share > 0:
        return "below 0.1%"
    return "above 99.9%" if text == "100.0%" and share < 1 else text


def codes_of_best(
    each: Sequence[scipy.sparse.csr_array], best: NDArray[np.intp]
) -> scipy.sparse.csr_array:
    """Return the codes over each row's ``best`` dictionary, in the columns of all atoms."""
    parts = []
    for c, matrix in enumerate(each):
        counts = np.repeat(best == c, np.diff(matrix.indptr))
        shape = (matrix.indices, matrix.indptr)
        parts.append(scipy.sparse.csr_array((matrix.data * counts, *shape), shape=matrix.shape))
    return scipy.sparse.csr_array(scipy.sparse.hstack(parts, format="csr"))
