"""The kernel of an estimator: made of its parameters, with the gamma that ``fit`` chose."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from kernelatoms.engine import Array, is_device_array, machine
from kernelatoms.estimators.devices.conversion import enter, rebuilt, to_machine
from kernelatoms.estimators.state_checks import require_floats, require_rows
from kernelatoms.similarity import Kernel, make_kernel
from kernelatoms.similarity.contrast import Limits, warn_if_blind
from kernelatoms.similarity.factory import check_kernel, check_machine, is_precomputed
from kernelatoms.similarity.user_kernels import UserKernel

_CHECKED: ContextVar[bool] = ContextVar("_CHECKED", default=False)


@contextmanager
def without_contrast_check() -> Iterator[None]:
    """Fit estimators inside another one, which has checked the contrast of their kernel."""
    before = _CHECKED.set(True)
    try:
        yield
    finally:
        _CHECKED.reset(before)


def kernel_on(kernel: Kernel, bring: Callable[[Any], Any]) -> Kernel:
    """Return a kernel with ``bring(array)`` for the arrays that it holds."""
    found: Kernel = rebuilt(kernel, lambda array, _: bring(array))
    return found


class KernelChoice:
    """Estimators with the parameters kernel, gamma, degree, coef0 and kernel_params.

    ``gamma_`` is the number that ``fit`` chose, None where the kernel has no gamma. Models
    saved before there was one go by their parameter. ``fitted_kernel_`` is there where the kernel
    takes more than that from training rows.
    """

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: Any

    def _kernel(self) -> Kernel:
        """Return the kernel, as fitted."""
        kernel = getattr(self, "fitted_kernel_", None)
        kernel = self._asked_kernel() if kernel is None else kernel
        gamma = getattr(self, "gamma_", None)
        return kernel if gamma is None else kernel.with_gamma(gamma)

    def _asked_kernel(self) -> Kernel:
        """Return the kernel that the parameters ask for, before fit."""
        return make_kernel(
            rebuilt(self.kernel, enter),
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=rebuilt(self.kernel_params, enter),
        )

    def _fit_kernel(self, kernel: Kernel, X: Array) -> Kernel:
        """Fit the kernel to the training rows, and try a user's kernel on some of them."""
        check_machine(kernel, X)
        self.__dict__.pop("fitted_kernel_", None)  # of an earlier fit
        if is_device_array(X):
            kernel = kernel_on(kernel, lambda array: to_machine(array, X))
        fitted = kernel.fitted_to(X)
        if fitted is not kernel:
            self.fitted_kernel_ = fitted
        kernel = fitted.with_gamma_from(X)
        check_kernel(kernel, X)
        self._check_contrast(kernel, X)
        self.gamma_: float | None = kernel.gamma if kernel.has_gamma else None  # type: ignore[attr-defined]
        return kernel

    def _check_contrast(self, kernel: Kernel, X: Array) -> None:
        """Warn where a kernel sees nothing in the training rows."""
        if not _CHECKED.get():
            warn_if_blind(kernel, X, self._limits(kernel, X))

    def _limits(self, kernel: Kernel, X: Array) -> Limits:
        """Return which kernel values between training rows are as good as none: rounding."""
        return Limits()

    def _in_range(self, kernel: Kernel, X: Array) -> Array:
        """Return training rows, in float64 where their kernel values do not fit float32."""
        if X.dtype == np.float64 or self._precomputed:
            return X
        with np.errstate(all="ignore"):
            largest = kernel.diag(X).max(initial=0)
        return X if machine(X).in_safe_range(largest, X.dtype) else X.astype(np.float64)

    def _shared_parameters(self, X: Array) -> dict[str, Any]:
        """Return parameters under which fits to parts of X have one kernel, that of all rows."""
        asked = self._asked_kernel()
        fitted = asked.fitted_to(X)
        kernel = fitted.with_gamma_from(X)
        self._check_contrast(kernel, X)
        if fitted is asked and not kernel.has_gamma:
            return {}
        if fitted is asked and isinstance(self.kernel, str):
            return {"gamma": kernel.gamma}  # type: ignore[attr-defined]
        own = kernel.given if isinstance(kernel, UserKernel) else kernel
        return {"kernel": own, "kernel_params": None}

    def _check_rows_held(self, name: str, n_features: int, n_rows: int | None = None) -> int:
        """Check the kernel and the rows, or their numbers, that it compares with; count them."""
        self._check_kernel(n_features)
        if self._precomputed:
            return len(require_rows(self, name, n_features, n_rows))
        return len(require_floats(self, name, (n_rows, n_features)))

    def _check_kernel(self, n_features: int) -> None:
        """Check the kernel, and what ``fit`` stored of it."""
        kernel = self._kernel()  # refuses parameters
        if "fitted_kernel_" in vars(self):
            if type(self.fitted_kernel_) is not type(self._asked_kernel()):
                raise ValueError("fitted_kernel_ is not the kernel that the parameters ask for")
            kernel.featurize(np.zeros((1, n_features)))  # refuses what it must have and has not

    @property
    def _precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    @property
    def _takes_missing(self) -> bool:
        """Whether the kernel can be estimated from parts of rows; False if it is no kernel."""
        try:
            return self._asked_kernel().takes_missing
        except (TypeError, ValueError):
            return False
