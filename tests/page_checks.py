"""What holds for every HTML page that gatefit writes: whole, nothing fetched, named for those who cannot see."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and remembers what there is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def check_page(html: str) -> Page:
    """What holds for every page of ours."""
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert page.named("html")[0]["lang"] == "en"
    assert page.named("title")
    assert page.named("h1")
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for name in ("href", "src"):
            assert (attributes.get(name) or "#").startswith("#")
        for name in ("aria-labelledby", "aria-describedby"):
            assert set((attributes.get(name) or "").split()) <= set(ids)
    assert not re.search(r"https?://|@import|url\((?!#)", html)
    links = {attributes["href"] for _, attributes in page.tags if "href" in attributes}
    assert {link.removeprefix("#") for link in links if link} <= set(ids)
    assert len(page.named("caption")) == len(page.named("table"))
    assert all("scope" in attributes for attributes in page.named("th"))
    return page
