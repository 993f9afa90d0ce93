"""A run that waits at a step until it is killed or asked to stop, so that no machine is too fast or too slow for that.

    with holding({identity: step}, folder): ...       in a process that trains as ``experiments.worker.Worker`` does
    python tests/hold.py OPTIONS HELD                 a worker of ``experiments.processes`` with such runs

A run is held once: FOLDER/held-IDENTITY says that it was.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from gatefit.experiments import worker


@contextlib.contextmanager
def holding(steps: dict[str, int], folder: Path) -> Iterator[None]:
    """Runs that are told to have come to their step stay there."""
    usual = worker.Worker

    class Holding(usual):
        def __init__(self, store, *, tell, should_stop, **options):
            def tell_and_hold(event):
                tell(event)
                mark = folder / f"held-{event.identity}"
                if event.kind == "evaluated" and event.step >= steps.get(event.identity, sys.maxsize):
                    with contextlib.suppress(FileExistsError):
                        mark.touch(exist_ok=False)
                        while not should_stop():
                            time.sleep(0.02)

            super().__init__(store, tell=tell_and_hold, should_stop=should_stop, **options)

    worker.Worker = Holding
    try:
        yield
    finally:
        worker.Worker = usual


if __name__ == "__main__":
    from gatefit.experiments.processes import main

    held = json.loads(sys.argv[2])
    with holding(held["steps"], Path(held["folder"])):
        main()
