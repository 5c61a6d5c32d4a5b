"""The conformance classes of the OGC that the service follows; those of tiles are beside their routes."""

_SPEC = "http://www.opengis.net/spec"
_CLASSES = {
    "ogcapi-common-1/1.0": ("core", "landing-page", "html", "json", "oas30"),
    "ogcapi-common-2/1.0": ("collections", "html", "json"),
    "ogcapi-features-1/1.0": ("core", "geojson", "html", "oas30"),
    "ogcapi-features-2/1.0": ("crs",),
    "ogcapi-features-3/1.0": ("queryables", "queryables-query-parameters", "filter", "features-filter"),
    "cql2/1.0": (
        "cql2-text", "cql2-json", "basic-cql2", "advanced-comparison-operators", "case-insensitive-comparison",
        "property-property", "basic-spatial-functions", "basic-spatial-functions-plus",
    ),
    # of Core one rule is left out on purpose: an input is never fetched from a link that a stranger names
    "ogcapi-processes-1/1.0": ("core", "ogc-process-description", "json", "job-list", "dismiss"),
}  # fmt: skip
CONFORMS_TO = [f"{_SPEC}/{part}/conf/{name}" for part, names in _CLASSES.items() for name in names]
