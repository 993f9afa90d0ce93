"""Pages are followed as a reader follows them: block by block, in one folder, with the outputs that they show."""

import re
from pathlib import Path

import pytest

from pages import agrees, blocks, run_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = ("tutorials", "how-to", "explanation")
FOLLOWED = [
    *sorted(path for folder in FOLDERS for path in (DOCS / folder).glob("*.md")),
    DOCS / "index.md",
    DOCS / "reference.md",
]


QUICK = {"index.md", "reference.md", "table-to-c.md", "own-method.md", "call-from-c.md", "one-idea.md"}
"""Pages that `make test` follows; `make test-slow` follows all the others."""
SESSIONS = [
    pytest.param(page, id=str(page.relative_to(DOCS)), marks=[] if page.name in QUICK else [pytest.mark.slow])
    for page in FOLLOWED
]


@pytest.mark.outside
@pytest.mark.parametrize("page", SESSIONS)
def test_a_page_is_followed(page, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    for block, printed in run_page(page, folder):
        if block.says is not None:
            assert agrees(block.says, printed), f"{page}:{block.line} prints\n{printed}\nand says\n{block.says}"


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_says_what_tests_do_not_run_as_it_is_written(page):
    text = page.read_text()
    if any(re.search("tests (do not )?run:", block.comment) for block in blocks(text)):
        visible = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
        assert re.search(r"\btests\b", visible), f"{page} must say what tests run instead"


PAGE = """
<!-- tests run: echo 5 gates in 3 ms -->
```sh
echo 7 gates
```

```text
5 gates in 9 s
```

<!-- tests do not run: no such machine -->
```sh
ssh far-away
```

```python title="half.py"
HALF = 0.5
```

```python
from half import HALF

print(HALF, "of", 101)
```

```text
0.5 of 100
```

<!-- ends with code 3 -->
```sh
echo last; exit 3
```
"""


def test_a_session_goes_through_files_shells_and_python(tmp_path):
    page, folder = tmp_path / "page.md", tmp_path / "here"
    page.write_text(PAGE)
    folder.mkdir()
    done = run_page(page, folder)
    assert [printed for _, printed in done] == ["5 gates in 3 ms\n", "", "0.5 of 101\n", "last\n"]
    assert all(agrees(block.says, printed) for block, printed in done if block.says)


def test_a_command_that_fails_is_an_error(tmp_path):
    page, folder = tmp_path / "page.md", tmp_path / "here"
    folder.mkdir()
    for code in ("```sh\nfalse\ntrue\n```\n", "```python\n1 / 0\n```\n"):
        page.write_text(code)
        with pytest.raises(AssertionError):
            run_page(page, folder)


def test_what_is_said_is_compared():
    assert agrees("accuracy 0.97, ... gates in 2 s", "accuracy 0.95, 51 live gates in 31.5 ms")
    assert agrees("gates 980\nlevels 2", "gates   1,020\n\nlevels  2\n")
    assert agrees("digest 0123456789ab", "digest ba9876543210")
    assert not agrees("proved", "undecided")
    assert not agrees("accuracy 0.97", "accuracy 0.5")
    assert not agrees("gates 980", "gates 98")
    assert not agrees("gates 1", "gates 2")
    assert not agrees("gates 980", "gates 980\nand more")
