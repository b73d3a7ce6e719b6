"""Both machines have functions of the same names and arguments."""

import inspect

from kernelatoms.engine import cpu
from machines import tensor_machine


def test_names_and_arguments_are_those_of_the_other_machine():
    """As far as a name is there at all: callers must not know which machine they use."""
    gpu = tensor_machine().gpu
    both = set(vars(gpu)) & set(vars(cpu))
    common = {name for name in both if callable(getattr(cpu, name)) and name[0] != "_"}
    assert len(common) > 30
    for name in common:
        ours, theirs = (inspect.signature(getattr(m, name)).parameters for m in (gpu, cpu))
        assert list(ours) == list(theirs), name
        for one, other in zip(ours.values(), theirs.values(), strict=True):
            assert one.kind == other.kind, name
            # There is one CPU, and many devices: ``like`` must say which.
            assert one.default == other.default or one.name == "like", name
