"""Try to break kernelatoms: random cases without end, each known by its number; never installed.

- ``running``: cases on all processors, in child processes that are watched for crashes, hangs and
  memory; what was done is written down, so that a run can go on where it stopped.
- ``models``: model files, damaged blindly or rewritten by somebody who knows the format.
- ``tables``: tables of all kinds, damaged and strange.
- ``numbers``: coding and learning at extremes, against numpy.
- ``codec``: compressed files, damaged, rewritten by somebody who knows the format, or made up.
- ``kills``: commands killed and interrupted at random moments.
- ``checkpoints``: fits with a checkpoint, killed at random moments, go on to the same bits.
- ``mutations``: how bytes and JSON are damaged.

``make fuzz`` runs models, tables, numbers and codec for some minutes and prints its seed;
``make fuzz SEED=...`` goes on with a run, and ``python -m fuzz models --seed ... --case 17`` plays
one case again.
"""
