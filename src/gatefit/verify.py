"""``gatefit.verify``: questions to a circuit, answered with proofs.

    from gatefit import verify
    answer = verify.robust(circuit, row, changes=2)          Proved | Counterexample | Undecided

The names are those of ``gatefit.circuit.verify``, imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatefit.circuit.verify import *  # noqa: F403


def __getattr__(name: str) -> Any:
    from gatefit.circuit import verify

    if name in verify.__all__:
        return getattr(verify, name)
    raise AttributeError(f"module 'gatefit.verify' has no attribute {name!r}")


def __dir__() -> list[str]:
    from gatefit.circuit import verify

    return list(verify.__all__)
