"""Finding, checking and downloading files."""

import gzip
import hashlib
import logging
import sys
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gatefit.datasets.files import DatasetError, Locator, RawFile, cache_dir, checksum, digest, read_verified

CONTENT = b"forty-two\n" * 1000
SHA256 = checksum(CONTENT, "sha256")
FILE = RawFile("answers.txt", (SHA256,), ("answers", "more/answers"))


def put(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("folder", ["", "answers", "more/answers"])
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
def test_each_folder_plain_or_compressed(tmp_path, folder, compressed):
    path = tmp_path / folder / ("answers.txt.gz" if compressed else "answers.txt")
    put(path, gzip.compress(CONTENT, mtime=1) if compressed else CONTENT)
    source = Locator("answers", tmp_path)
    assert source.find((FILE,)) == (0, [path])
    assert source.read((FILE,)) == [CONTENT]


def test_places_are_searched_in_order(tmp_path, monkeypatch, cache):
    given, environment = tmp_path / "given", tmp_path / "environment"
    monkeypatch.setenv("GATEFIT_DATA", str(environment))
    paths = [place / "answers" / "answers.txt" for place in (given, environment, cache)]
    for path in paths:
        put(path)
    source = Locator("answers", given)
    assert [place for place, _ in source.places()] == [given, environment, cache]
    for path in paths:
        assert source.find((FILE,)) == (0, [path])
        path.unlink()
    with pytest.raises(DatasetError):
        source.find((FILE,))


def test_files_of_a_layout_are_in_one_place(tmp_path, monkeypatch, cache):
    other = replace(FILE, name="questions.txt")
    put(tmp_path / "given" / "answers.txt")
    put(cache / "questions.txt")
    put(tmp_path / "environment" / "answers" / "single.txt")
    monkeypatch.setenv("GATEFIT_DATA", str(tmp_path / "environment"))
    source = Locator("answers", tmp_path / "given")
    single = (replace(FILE, name="single.txt"),)
    assert source.find((FILE, other), single) == (1, [tmp_path / "environment" / "answers" / "single.txt"])
    with pytest.raises(DatasetError, match="were not found"):
        source.find((FILE, other))


def test_not_found_says_where_and_what(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("GATEFIT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError) as caught:
        Locator("answers", tmp_path).find((FILE,), (replace(FILE, name="all.zip"),))
    for part in (
        "the files of answers were not found",
        "answers.txt\n  or all.zip",
        f"{tmp_path} (data_dir)",
        f"{tmp_path / 'nowhere'} ($GATEFIT_DATA)",
        f"{cache} (the cache)",
        "folders answers, more/answers",
        "No address to download from is known",
    ):
        assert part in str(caught.value)
    downloadable = replace(FILE, download=("http://localhost/answers.txt", SHA256))
    with pytest.raises(DatasetError, match=r"Allow the download \(download=True\)"):
        Locator("answers", download=False).find((downloadable,))


def test_data_dir_that_is_none(tmp_path):
    with pytest.raises(DatasetError, match=r"data_dir is not a directory: .*typo"):
        Locator("answers", tmp_path / "typo").find((FILE,))


def changed_byte(content: bytes) -> bytes:
    return content[:100] + bytes([content[100] ^ 1]) + content[101:]


@pytest.mark.parametrize("damage", [changed_byte, lambda c: c[:-7], lambda c: b""], ids=["changed", "cut", "empty"])
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
def test_damage_names_the_file_and_both_checksums(tmp_path, damage, compressed):
    content = damage(gzip.compress(CONTENT) * 5 if compressed else CONTENT)
    path = put(tmp_path / ("answers.txt.gz" if compressed else "answers.txt"), content)
    with pytest.raises(DatasetError) as caught:
        Locator("answers", tmp_path).read((FILE,))
    assert isinstance(caught.value, ValueError)
    for part in (str(path), f"expected {SHA256}", f"found sha256:{hashlib.sha256(content).hexdigest()}"):
        assert part in str(caught.value)


def test_any_of_several_checksums_will_do(tmp_path):
    path = put(tmp_path / "answers.txt")
    md5 = checksum(CONTENT, "md5")
    assert md5 == f"md5:{hashlib.md5(CONTENT).hexdigest()}"
    assert read_verified(path, replace(FILE, checksums=("sha256:00", md5))) == CONTENT
    with pytest.raises(DatasetError, match="expected md5:00 or sha256:00, found md5:"):
        read_verified(path, replace(FILE, checksums=("md5:00", "sha256:00")))


def test_digest_depends_on_names_and_contents_only():
    assert digest([FILE]) == digest([replace(FILE, folders=(), download=("u", "c"))])
    assert digest([FILE]) != digest([replace(FILE, name="b")])
    assert digest([FILE]) != digest([replace(FILE, checksums=("sha256:0",))])
    assert digest([FILE]) == hashlib.sha256(f"{SHA256}  answers.txt\n".encode()).hexdigest()


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "home/.cache/gatefit"),
        ("darwin", {}, "home/Library/Caches/gatefit"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/gatefit/Cache"),
        ("darwin", {"XDG_CACHE_HOME": "xdg"}, "xdg/gatefit"),
    ],
)
def test_cache_directory(monkeypatch, platform, environment, expected):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_dir() == Path(expected)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The address of a server on this machine, and the directory that it serves."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}", folder
        http.shutdown()
        thread.join()


def test_download_to_the_cache(server, cache, capfd):
    address, folder = server
    packed = gzip.compress(CONTENT)
    put(folder / "answers.txt.gz", packed)
    file = replace(FILE, download=(f"{address}/answers.txt.gz", checksum(packed, "sha256")))
    seen = []
    source = Locator("answers", download=True, progress=lambda *report: seen.append(report))
    assert source.read((file,)) == [CONTENT]
    assert seen[-1] == ("answers.txt.gz", len(packed), len(packed))
    assert all(0 <= done <= total == len(packed) for _, done, total in seen)
    assert (cache / "answers" / "answers.txt.gz").read_bytes() == packed
    (folder / "answers.txt.gz").unlink()
    assert Locator("answers", download=True).read((file,)) == [CONTENT]  # now from the cache
    assert capfd.readouterr() == ("", "")


def test_damaged_download_is_not_kept(server, cache):
    address, folder = server
    put(folder / "answers.txt", CONTENT[:-1])
    file = replace(FILE, download=(f"{address}/answers.txt", SHA256))
    with pytest.raises(DatasetError, match=f"(?s)from {address}/answers.txt .expected {SHA256}. failed.*put it into"):
        Locator("answers", download=True).read((file,))
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_download_that_is_not_there(server):
    address, _ = server
    file = replace(FILE, download=(f"{address}/none.txt", SHA256))
    with pytest.raises(DatasetError, match="404"):
        Locator("answers", download=True).read((file,))


def test_logging_level_of_pooch_is_restored(server):
    import pooch

    address, folder = server
    put(folder / "answers.txt")
    pooch.get_logger().setLevel(logging.INFO)
    Locator("answers", download=True).read((replace(FILE, download=(f"{address}/answers.txt", SHA256)),))
    assert pooch.get_logger().level == logging.INFO


def test_download_without_pooch(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    file = replace(FILE, download=("http://127.0.0.1/answers.txt", SHA256))
    with pytest.raises(ImportError, match="downloading answers needs pooch"):
        Locator("answers", download=True).read((file,))
