"""What runs in the processes that tests of the command line fork."""

import os
import sys


def be_the_command(argv, path, folder, env, said):
    """Be ``kernelatoms ...``, in a process that has imported but not done anything.

    What it says on standard output and standard error goes into the two files ``said``.
    """
    os.chdir(folder)
    os.environ.pop("KERNELATOMS_DATA", None)
    os.environ.update({"COLUMNS": "100"} | env)
    for stream, file in zip((1, 2), said, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    sys.argv, sys.path[:0] = argv, path
    from kernelatoms.__main__ import main

    main()
