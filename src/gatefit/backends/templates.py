"""Text that is mostly fixed, as Jinja templates beside the module that fills them in.

    *.html.jinja    HTML: {{ value }} is escaped, always; what is markup already says so itself (``markupsafe.Markup``)
    *.jinja         code: @{value} as it is, for { and } belong to the language; names come through ``names`` before

A value is never read as a template, a name that is missing is an error, and a line that holds only a tag leaves none.
"""

from functools import cache
from typing import Any


def render(package: str, template: str, **values: Any) -> str:
    """The template of that name in the package's folder ``templates``, filled in."""
    return str(_environment(package, template.endswith(".html.jinja")).get_template(template).render(values))


@cache
def _environment(package: str, html: bool) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        variable_start_string="{{" if html else "@{",
        variable_end_string="}}" if html else "}",
    )
