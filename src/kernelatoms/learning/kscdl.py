"""KSCDL's dictionary step: atoms that are rows, moved along the kernel's gradient.

See docs/decisions/036-kscdl-steps.md.
"""

import numpy as np
from numpy.typing import NDArray

from kernelatoms.coding.codes import Codes
from kernelatoms.coding.pursuits import KSC, Lasso
from kernelatoms.engine import Array
from kernelatoms.learning.gradients import move_atoms, project_to_ball, step_plainly
from kernelatoms.learning.loop import UpdateResult
from kernelatoms.similarity import Kernel


class GradientStep:
    """Move all atoms one step downhill on the objective of their codes.

    Parameters
    ----------
    kernel : Kernel
        One with a gradient.
    alpha : float
        Weight of |w|_1.
    max_norm : float or None
        The longest that atoms may be.
    """

    accepts: tuple[type, ...] = (Lasso, KSC)

    def __init__(self, kernel: Kernel, alpha: float, max_norm: float | None = None) -> None:
        self.kernel, self.alpha, self.max_norm = kernel, alpha, max_norm

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Improve a dictionary, all rows and their codes at hand."""
        return self.take_batch(rows, codes, dictionary, None, 1.0)

    def take_batch(
        self, rows: Array, codes: Codes, dictionary: Array, past: Array | None, decay: float
    ) -> UpdateResult:
        """Improve a dictionary by a batch; the curvature of earlier ones shortens the step."""
        step = move_atoms(
            self.kernel, rows, codes.to_csr(), dictionary, self.alpha, max_norm=self.max_norm,
            past=None if past is None else decay * past,
        )  # fmt: skip
        return UpdateResult(step.atoms, codes, step.objective, step.curvature)

    def clear_atoms(self, sums: Array, atoms: NDArray[np.intp]) -> Array:
        """Return the curvature without any use of these atoms."""
        sums = sums.copy()
        sums[atoms] = 0
        sums[:, atoms] = 0
        return sums

    def padded(self, sums: Array, n_new: int) -> Array:
        """Return the curvature with ``n_new`` unused atoms more."""
        return np.pad(sums, (0, n_new))

    def new_atoms(self, rows: Array) -> Array | None:
        """Return rows, those that are too long shortened."""
        return project_to_ball(rows, self.max_norm)


class PlainStep(GradientStep):
    """The paper's step (11): one step size for all atoms, without a check of the objective.

    ``step`` is the size in units of 1 / L; see ``step_plainly``. Unused atoms do not move.
    """

    def __init__(self, kernel: Kernel, alpha: float, max_norm: float | None, step: float) -> None:
        super().__init__(kernel, alpha, max_norm)
        self.step = step

    def apply(self, rows: Array, codes: Codes, dictionary: Array) -> UpdateResult:
        """Take the step."""
        step = step_plainly(
            self.kernel, rows, codes.to_csr(), dictionary, self.alpha, self.step, self.max_norm
        )
        return UpdateResult(step.atoms, codes, step.objective, step.curvature)

    def new_atoms(self, rows: Array) -> Array | None:
        """Return None: nothing replaces an atom."""
        return None
