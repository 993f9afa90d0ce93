"""A page: one file, nothing fetched, readable without eyes and on paper, with the style of ``templates/style.css``."""

import re

from markupsafe import Markup, escape

from gatefit.backends.templates import render


def page(title: str, body: Markup) -> str:
    """A whole page around ``body``, which starts with its heading and holds an element with the id "content"."""
    return render("gatefit.view", "page.html.jinja", title=title, body=body)


def with_code(text: str) -> Markup:
    """Text in which what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))
