"""``gatefit datasets``: what there is, how large, and where its files are or how to get them."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit.cli import output
from gatefit.cli.errors import check_choice, user_input
from gatefit.cli.options import AsJson, DataDir

if TYPE_CHECKING:
    from rich.console import Console

    from gatefit.datasets import Dataset, DatasetInfo

EXAMPLE = ("gatefit datasets", "gatefit datasets mnist --data-dir data")


def datasets(
    name: Annotated[str | None, typer.Argument(help="one data set; without it, all are listed")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the data sets; or show one, and where its files are looked for."""
    from gatefit.datasets import DATASETS

    if name is not None:
        check_choice("data set", name, DATASETS)
    rows = [_describe(each, DATASETS[each], data_dir) for each in ([name] if name else DATASETS)]
    if as_json:
        output.print_json(rows[0] if name else {"datasets": rows})
    elif name:
        _show(rows[0])
    else:
        titles = ("name", "train", "test", "features", "bits", "classes", "files")
        sizes = [[f"{row[title]:,}" for title in titles[1:-1]] for row in rows]
        files = [row["found"] or row["how"] for row in rows]
        output.print_table(titles, [(row["name"], *s, f) for row, s, f in zip(rows, sizes, files, strict=True)])


def _describe(name: str, info: "DatasetInfo", data_dir: Path | None) -> dict[str, Any]:
    found, places = locate(name, info, data_dir)
    how = "downloaded when first used" if info.download else "get them from their authors, see --data-dir"
    return {
        "name": name,
        "title": info.title,
        "task": info.task,
        "train": info.train,
        "test": info.test,
        "features": info.features,
        "bits": info.bits,
        "classes": info.classes,
        "source": info.source,
        "terms": info.terms,
        "options": list(info.options),
        "found": found,
        "how": "" if found else how,
        "places": places,
    }


def _show(row: dict[str, Any]) -> None:
    pairs = [
        ("name", f"{row['name']}: {row['title']}"),
        ("samples", f"{row['train']:,} train, {row['test']:,} test"),
        ("features", f"{row['features']:,}, encoded as {row['bits']:,} bits"),
        ("classes", str(row["classes"])),
        ("source", row["source"]),
        ("terms", row["terms"]),
        ("options", ", ".join(row["options"]) or "none"),
        ("files", row["found"] or f"not here; {row['how']}"),
        *(("looked in", place) for place in row["places"]),
    ]
    output.print_pairs(pairs)


def locate(name: str, info: "DatasetInfo", data_dir: Path | None) -> tuple[str | None, list[str]]:
    """Where the files of a data set are, if they are anywhere, and the places that are looked in."""
    from gatefit.datasets import DatasetError, Locator

    if name == "digits":
        return ("scikit-learn" if find_spec("sklearn") else None), ["scikit-learn"]

    @dataclass(frozen=True)
    class Probe(Locator):
        """Stops a loader as soon as its files are found: nothing is read."""

        def find(self, *layouts: Any) -> tuple[int, list[Path]]:
            raise _Found(super().find(*layouts)[1])

    probe = Probe(name, data_dir)
    places = [f"{place} ({reason})" for place, reason in probe.places()]
    try:
        info.load(probe)
    except _Found as found:
        return str(found.paths[0].parent), places
    except DatasetError:
        if data_dir is not None and not data_dir.is_dir():
            raise
        return None, places
    raise AssertionError(f"the loader of {name} looked for no file")


def load(name: str, data_dir: Path | None, options: dict[str, Any], *, quiet: bool = False) -> "Dataset":
    """A data set, with what is downloaded shown on stderr."""
    from gatefit.datasets import load_dataset

    with user_input(), downloads(output.console(stderr=True), quiet=quiet) as progress:
        return load_dataset(name, data_dir=data_dir, progress=progress, **options)


@contextlib.contextmanager
def downloads(console: "Console", *, quiet: bool = False) -> Iterator[Callable[[str, int, int], None] | None]:
    """What ``load_dataset`` tells its progress: a bar for every file on a terminal, elsewhere a line."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    if quiet:
        yield None
        return
    tasks: dict[str, Any] = {}
    bars = Progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=console)

    def update(name: str, done: int, total: int) -> None:
        if name not in tasks:
            tasks[name] = bars.add_task(f"downloading {name}")
            if console.is_terminal:
                bars.start()
            else:
                console.print(f"downloading {name}")
        bars.update(tasks[name], completed=done, total=total or None)

    try:
        yield update
    finally:
        if console.is_terminal:
            bars.stop()


class _Found(Exception):
    def __init__(self, paths: list[Path]) -> None:
        super().__init__()
        self.paths = paths
