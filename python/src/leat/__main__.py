"""`python -m leat …`: the same command line as `deno task leat`."""

from __future__ import annotations

import os
import sys

from ._deno import cli_command


def main() -> None:
    """Replaces this process by the program that the arguments name: `leat worker --dispatcher ws://…`."""
    command, environment = cli_command(sys.argv[1:])
    sys.stdout.flush()
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main()
