"""Write the HTML page: the template, filled, with its policy."""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import metadata, resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from analyze.engine.result import TraceReport
from analyze.report.formats import Rendering
from analyze.report.html_report.groups import GROUPS
from analyze.report.html_report.page import page_of
from analyze.words import visible

_PACKAGE = "analyze.report.html_report"
_STYLE = "style.css"
_COMMAND = re.compile("`(analyze [a-z ]+)`")
_SCRIPTS = ("timeline_model.js", "timeline_drawing.js", "timeline.js", "tables.js", "page.js")


def write_html(reports: Sequence[TraceReport], _: Rendering) -> str:
    """Return reports as one HTML page; the format ``html``.

    Raises:
        AnalyzeError: a stored result holds views that this version does not write.
    """
    style, scripts = _asset(_STYLE), [_asset(name) for name in _SCRIPTS]
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            page=page_of(reports),
            all_groups=GROUPS,
            policy=_policy(style, scripts),
            style=Markup(style),  # noqa: S704 - our own file
            scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own files
            version=metadata.version("kinetolint"),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["with_commands"] = _with_commands
    return environment


def _shown(value: object) -> object:
    """Make visible what would act on the text around it; markup of our own stays.

    Printed into the log of a CI runner, ``##[`` would begin a command of an older form.
    """
    if type(value) is not str:
        return value
    return Markup(escape(visible(value)).replace("##[", "#&#35;["))  # noqa: S704 - escaped


def _with_commands(sentence: str) -> Markup:
    """Set the commands of our own that a sentence names, in backticks, as code."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(_shown(sentence))))  # noqa: S704 - escaped


@cache
def _asset(name: str) -> str:
    return resources.files(_PACKAGE).joinpath("assets", name).read_text("utf-8")


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Return a policy under which only these texts are styles and scripts, and nothing is loaded.

    https://www.w3.org/TR/CSP3/ - a hash is that of the text between the tags.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {' '.join(map(_hash, scripts))}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
