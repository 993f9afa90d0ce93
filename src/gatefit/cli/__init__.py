"""The command line.

gatefit VERB [OPTIONS]

exit code 0     done
          1     the work itself failed: training diverged, the disk is full, two circuits differ
          2     it cannot be done as asked: an unknown name, a missing or damaged file, no verdict from ``prove``
          130   stopped by Ctrl+C, 143 by SIGTERM; what can be resumed has been saved
"""

from gatefit.cli.app import app, main

__all__ = ["app", "main"]
