"""Whether Triton makes kernels for a device; without it, plain torch does the work.

See docs/decisions/011-gpu-programs.md.
"""

import importlib.util
import os
from functools import cache
from typing import Any

import torch


def has_triton(like: Any) -> bool:
    """Whether kernels can be compiled for where a tensor lives."""
    return compiles_for(like.device)


@cache
def compiles_for(device: torch.device) -> bool:
    """Whether Triton makes kernels for a device: it is there, and so is a card that it knows.

    Its interpreter (TRITON_INTERPRET=1) runs them anywhere, slowly: for tests.
    """
    if importlib.util.find_spec("triton") is None:
        return False
    if os.environ.get("TRITON_INTERPRET") == "1":
        return True
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
