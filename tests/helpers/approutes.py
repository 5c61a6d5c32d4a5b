"""All routes of an application, each as requests that can be sent. New routes are found by themselves."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

EXAMPLES = {"tileMatrix": "0", "tileRow": "0", "tileCol": "0", "file": "manifest.json", "process": "release",
            "featureId": "0"}  # fmt: skip


class Found(NamedTuple):
    method: str
    template: str
    calls: frozenset[Callable[..., Any]]
    queries: tuple[str, ...]

    def path(self, **values: str) -> str:
        """The path with values for its parameters; the others get an example."""
        fill = self.examples(values.get("release", "nothing")) | values
        return re.sub(r"{(\w+)}", lambda part: quote(fill[part[1]], safe="/"), self.template)

    def examples(self, release: str) -> dict[str, str]:
        """A value for each parameter of the path; what they name exists where it can be known beforehand."""
        usual = {**EXAMPLES, "release": release, "collectionId": f"{release}.flows"}
        return {name: usual.get(name, "nothing") for name in re.findall(r"{(\w+)}", self.template)}


def routes_of(app: FastAPI) -> list[Found]:
    found = []
    for route in iter_route_contexts(app.routes):
        dependant = getattr(route.original_route, "dependant", None)
        calls = frozenset(one.call for one in _tree(dependant)) if dependant else frozenset()
        queries = tuple(field.alias for one in _tree(dependant) for field in one.query_params) if dependant else ()
        found += [Found(method, str(route.path_format), calls, queries) for method in sorted(route.methods or {"GET"})]
    return found


def _tree(dependant: Any) -> Iterator[Any]:
    yield dependant
    for part in dependant.dependencies:
        yield from _tree(part)
