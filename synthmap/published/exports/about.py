"""What every exported file says about itself: where it comes from, how to cite it, what it promises."""

from synthmap.published.statements import statement_of
from synthmap.published.store import OpenedRelease
from synthmap.release.statement import text

IDS = "Ids are text: leading zeros belong to them."


def citation(opened: OpenedRelease) -> str:
    """Return one line that names the release so that the same figures can be found again."""
    manifest = opened.manifest
    title = manifest.title or manifest.name
    year = f" ({manifest.year})" if manifest.year is not None else ""
    private = "" if manifest.private else " NOT PRIVATE: a demonstration drawn with a fixed seed."
    return (
        f"{title}{year}: synthetic commuting flows, release {opened.id}, made {manifest.created[:10]} "
        f"with synthmap {manifest.software.synthmap}. Manifest SHA-256 {opened.etag}.{private}"
    )


def about(opened: OpenedRelease, omitted: str = "") -> dict[str, str]:
    """Return name and value of what a file says about itself; `omitted` tells what its format could not hold."""
    manifest = opened.manifest
    told = {
        "title": manifest.title or manifest.name,
        "release": opened.id,
        "citation": citation(opened),
        "epsilon": repr(manifest.privacy.dp.epsilon),
        "delta": repr(manifest.privacy.dp.delta),
        "zones_vintage": manifest.zones.vintage,
        "year": "" if manifest.year is None else str(manifest.year),
        "created": manifest.created,
        "manifest_sha256": opened.etag,
        "ids": IDS,
        "omitted": omitted,
        "privacy_statement": text(statement_of(opened)),
    }
    return {name: value for name, value in told.items() if value}


def readme(opened: OpenedRelease, *paragraphs: str) -> str:
    """Return a text to lie beside files whose format has no place for one."""
    return "\n\n".join([citation(opened), *paragraphs, IDS, text(statement_of(opened))]) + "\n"
