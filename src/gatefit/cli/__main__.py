"""``python -m gatefit.cli``: the same as ``gatefit``."""

from gatefit.cli import main

if __name__ == "__main__":
    main()
