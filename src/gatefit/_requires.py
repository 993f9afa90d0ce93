"""One clear sentence when an optional dependency is missing."""

from importlib import import_module
from types import ModuleType


def require(module: str, extra: str, feature: str) -> ModuleType:
    """Import ``module``, or say which feature needs it and which command installs it."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != package:
            raise
        raise ImportError(
            f"{feature} needs {package}, which is not installed; run: pip install 'gatefit[{extra}]'"
        ) from None
