"""A page: one file, nothing fetched, readable without eyes and on paper."""

import re
from html import escape

from gatefit.view.style import STYLE


def page_html(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """A whole page around ``body``, which starts with its heading."""
    scripted = f"<script>{script}</script>\n" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#content">Skip to the content</a>\n{body}\n{scripted}</body>\n</html>\n'
    )


def rich(text: str) -> str:
    """Escaped text; what stands between backticks is code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
