"""Matrix products of float32 that are products of float32.

A user's flags may let CUDA multiply float32 matrices in TF32, with 10 bits after the point:
``torch.set_float32_matmul_precision("high")`` does, for a network that does not care. Codes do: a
correlation wrong by a thousandth picks another atom. The flags are the process's and not ours to
change, so that where they allow TF32, products are made in float64 and rounded.
"""

from typing import Any

import torch


def _multiplies_in_float32() -> bool:
    """Whether float32 matrices are multiplied as such, whatever names torch's flags go by."""
    flags = torch.backends.cuda.matmul
    precision = getattr(flags, "fp32_precision", None)  # from torch 2.9 on
    if precision is not None:
        return precision not in ("tf32", "bf16")
    return not flags.allow_tf32


def matmul(a: Any, b: Any, out: Any = None) -> Any:
    """Return a @ b of tensors of one type, in float32 to float32's precision."""
    if a.is_cuda and a.dtype == torch.float32 and not _multiplies_in_float32():
        product = torch.matmul(a.double(), b.double()).float()
        return product if out is None else out.copy_(product)
    return torch.matmul(a, b) if out is None else torch.matmul(a, b, out=out)
