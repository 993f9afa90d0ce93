"""A worker process: units of runs on its input, what happens to them on its output (``experiments.crew``)."""

import json
import os
import queue
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from gatefit.experiments.events import RunEvent
from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig


def main() -> None:
    """Work until there is no more input."""
    options = json.loads(sys.argv[1])
    # Nothing but messages goes to the runner, whatever a library may print.
    messages = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    stop, units = threading.Event(), queue.SimpleQueue[list[RunConfig] | None]()

    def leave(*_: object) -> None:
        stop.set()
        units.put(None)

    signal.signal(signal.SIGTERM, leave)
    threading.Thread(target=_listen, args=(stop, units), daemon=True).start()

    def tell(event: RunEvent) -> None:
        _say(messages, {"event": asdict(event)}, stop)

    from gatefit.experiments.work import Worker, builder

    with Store.open(Path(options["store"]), create=False) as store:
        worker = Worker(
            store,
            threads=options["threads"],
            data_dir=None if options["data_dir"] is None else Path(options["data_dir"]),
            diagnostics=options["diagnostics"],
            build=builder(options["build"]),
            tell=tell,
            should_stop=stop.is_set,
        )
        while (unit := units.get()) is not None and not stop.is_set():
            busy = worker.do(unit)
            _say(messages, {"busy": [config.identity for config in busy]}, stop)


def _listen(stop: threading.Event, units: "queue.SimpleQueue[list[RunConfig] | None]") -> None:
    """Units as they come; at the end of the input the worker stops after its step."""
    for line in sys.stdin:
        units.put([RunConfig.from_dict(content) for content in json.loads(line)["configs"]])
    stop.set()
    units.put(None)


def _say(messages: TextIO, content: dict[str, Any], stop: threading.Event) -> None:
    try:
        messages.write(f"{json.dumps(content)}\n")
    except OSError:
        stop.set()  # A pipe without a reader: the runner is gone. Save and leave.


if __name__ == "__main__":
    main()
