"""Pages for people: rendered here, without scripts, and nothing fetched from elsewhere."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from synthmap import __version__
from synthmap.release.manifest import Manifest
from synthmap.release.statement_files import FILTERS, style
from synthmap.release.statement_words import kind_and_amounts
from synthmap.service.links import href

STYLESHEET = "synthmap.css"


@dataclass(frozen=True)
class Caution:
    """What must be known before a figure of a release is used.

    Attributes
    ----------
    text : str
        The promise in one sentence, and how to read the figures.
    warning : str, optional
        Why the release is not private at all.
    """

    text: str
    warning: str | None


def caution(manifest: Manifest) -> Caution:
    """Return the short form of a release's privacy statement."""
    loss = manifest.privacy.dp
    kind, amounts = kind_and_amounts(loss.epsilon, loss.delta)
    promise = f"{kind} with {amounts}" if manifest.private else f"with the noise of {amounts}"
    text = f"Synthetic: origins are drawn, {promise}. Do not read single zones as facts: sum them up."
    return Caution(text, None if manifest.private else f"NOT PRIVATE: {manifest.warning}")


def page(request: Request, template: str, *crumbs: tuple[str, str], status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page.

    Parameters
    ----------
    request : Request
    template : str
        Name in ``templates``.
    *crumbs : tuple of (str, str)
        Address and title of the pages above this one.
    status : int
    **values
        What the template shows; text is escaped.
    """
    shared = {
        "stylesheet": urlsplit(href(request, "static", STYLESHEET)).path,
        "home": href(request),
        "crumbs": crumbs,
        "version": __version__,
    }
    return HTMLResponse(_templates().get_template(template).render(shared | values), status)


@cache
def stylesheet() -> str:
    """Return the style of all pages: that of statements, and what these alone need."""
    return style() + files("synthmap.service").joinpath("static", STYLESHEET).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("synthmap.service"), PackageLoader("synthmap.release")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": _figure, **FILTERS}
    return environment


def _figure(value: Any) -> str:
    """Return a value for reading: thousands apart, nothing for null."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
