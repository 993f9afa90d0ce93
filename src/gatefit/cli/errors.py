"""Errors as a user sees them: one line on stderr and an exit code; a bug of ours keeps its traceback.

error: WHAT WAS GIVEN; WHAT WAS NEEDED; WHAT TO DO
"""

import contextlib
import difflib
import errno
import os
from collections.abc import Iterable, Iterator
from typing import Final

import typer

from gatefit.cli.output import printable

FAILED: Final = 1
"""The work itself failed, although it was asked for rightly."""
REFUSED: Final = 2
"""It cannot be done as asked."""

# By name: a class can only have been raised if its module is loaded, so none has to be loaded to recognise it.
_KNOWN: Final[dict[tuple[str, str], int]] = {
    ("gatefit.circuit.prove.certificate", "CertificateError"): REFUSED,
    ("gatefit.circuit.container", "CircuitFileError"): REFUSED,
    ("gatefit.datasets.files", "DatasetError"): REFUSED,
    ("gatefit.experiments.database", "StoreError"): REFUSED,
    ("gatefit.methods.base", "NotBooleanError"): REFUSED,
    ("gatefit.training.checkpoint", "CheckpointError"): REFUSED,
    ("gatefit.training.loop", "TrainingDivergedError"): FAILED,
    ("gatefit.training.folder", "RunFolderError"): REFUSED,
    ("gatefit.experiments.ray_jobs", "RayError"): REFUSED,
    ("gatefit.training.parallel", "ParallelError"): FAILED,
}


class UserError(Exception):
    """What was asked for cannot be done; the message says why and what to do."""

    def __init__(self, message: str, code: int = REFUSED) -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def user_input() -> Iterator[None]:
    """A ValueError or TypeError in here is about what the user gave, and says so to the user."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from error


def explain(error: Exception) -> tuple[str, int] | None:
    """The message and exit code of an error that a user can mend; None for a bug."""
    if isinstance(error, UserError):
        return str(error), error.code
    if isinstance(error, typer.TyperException):
        return _usage(error), REFUSED
    for kind in type(error).__mro__:
        code = _KNOWN.get((kind.__module__, kind.__qualname__))
        if code is not None:
            return str(error), code
    if isinstance(error, ImportError) and "is not installed; run: pip install" in str(error):
        return str(error), REFUSED
    if isinstance(error, OSError):
        return _system(error) if error.errno is not None else (str(error), REFUSED)
    return None


def one_line(message: str) -> str:
    """A message of several lines as one, safe for a terminal: messages quote files."""
    joined = ""
    for line in filter(None, map(str.strip, message.splitlines())):
        joined += line if not joined else f" {line}" if joined[-1] in ":;,." else f"; {line}"
    return printable(joined)


def check_choice(what: str, given: str, choices: Iterable[str], hint: str = "") -> None:
    """Refuse a name that is not among ``choices``, and say which one is nearest."""
    choices = list(choices)
    if given in choices:
        return
    near = difflib.get_close_matches(given, choices, 1, cutoff=0.5)
    meant = f"; did you mean {near[0]}?" if near else ";"
    raise UserError(f"unknown {what} {given!r}{meant} choose one of {', '.join(choices)}{hint}")


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    where = f" (see {context.command_path} --help)" if context is not None else ""
    message = error.format_message().rstrip(".")
    return f"{message[:1].lower()}{message[1:]}{where}"


def _system(error: OSError) -> tuple[str, int]:
    name = f" while writing {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk is full{name}; what was saved before is intact: free some space and run the same command again",
            FAILED,
        )
    reason = os.strerror(error.errno or 0)
    subject = f"{error.filename}: " if error.filename else ""
    mendable = isinstance(error, FileNotFoundError | FileExistsError | IsADirectoryError | NotADirectoryError)
    return f"{subject}{reason}", REFUSED if mendable or isinstance(error, PermissionError) else FAILED
