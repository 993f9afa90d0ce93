"""Runs a Yosys script with the pip package ``pyosys``, as ``yosys -q SCRIPT`` would, in a process of its own."""

import sys
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """Run every line of the script that is named on the command line; ``-V`` prints the version."""
    if sys.argv[1] == "-V":
        sys.stdout.write(version("pyosys") + "\n")
        return
    from pyosys import libyosys

    design = libyosys.Design()
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        libyosys.run_pass(line, design)


if __name__ == "__main__":
    main()
