"""``synthmap audit``: hold the code that plans and draws against its promise, in made-up worlds."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synthmap.commands.shared import AsJson, show

if TYPE_CHECKING:
    from synthmap.audit.exact import ExactFinding
    from synthmap.audit.statistical import StatisticalFinding

    Findings = Sequence[ExactFinding] | Sequence[StatisticalFinding]

app = typer.Typer()
_CONTROLS = "  broken on purpose, to be found:"


@app.command()
def audit(
    exact: Annotated[bool, typer.Option("--exact", help="Only small worlds, through every choice.")] = False,
    statistical: Annotated[bool, typer.Option("--statistical", help="Only attacks by many draws.")] = False,
    literature: Annotated[bool, typer.Option("--literature", help="Only the attacks of the literature.")] = False,
    as_json: AsJson = False,
) -> None:
    """Audit the mechanism in made-up worlds, and the audit by mechanisms that are broken on purpose.

    Exit code 1: a promise is broken, or a breach was not found. Reads no data.
    """
    from synthmap.audit import chosen
    from synthmap.audit.attacks import chosen as attacks
    from synthmap.audit.statistical import FALSE_ALARM
    from synthmap.kernels.stream import secure_stream

    every = not (exact or statistical or literature)
    values: dict[str, Any] = {"holds": True}
    lines: list[str] = []
    if exact or every:
        exactly = chosen.audit_exactly_all()
        values["exact"] = _values(*exactly)
        lines += ["Exact: all neighbouring tables, every choice of the code", _exact_line(None)]
        lines += [*map(_exact_line, exactly[0]), _CONTROLS, *map(_exact_line, exactly[1])]
    if statistical or every:
        attacked = chosen.attack_all(secure_stream())
        values["statistical"] = _values(*attacked) | {"false_alarm": FALSE_ALARM}
        lines += [f"Statistical: ε that an attack proves, wrong at most once in {1 / FALSE_ALARM:,.0f} attacks"]
        lines += [_statistical_line(None), *map(_statistical_line, attacked[0])]
        lines += [_CONTROLS, *map(_statistical_line, attacked[1])]
    if literature or every:
        known = attacks.audit_literature(secure_stream())
        values["literature"] = _values(*known) | {"false_alarm": FALSE_ALARM}
        lines += ["Literature: the same of linkage, longest commute, averaging, reconstruction"]
        lines += [_statistical_line(None), *map(_statistical_line, known[0])]
        lines += ["  without protection, or charged too little, to be found:", *map(_statistical_line, known[1])]
    values["holds"] = all(part["holds"] for part in values.values() if isinstance(part, dict))
    lines.append(
        "every promise is kept, every breach was found"
        if values["holds"]
        else "a promise is broken, or a breach was not found: do not release"
    )
    show(values, as_json, "\n".join(lines))
    if not values["holds"]:
        raise typer.Exit(1)


def _values(audits: "Findings", controls: "Findings") -> dict[str, Any]:
    """Return findings for JSON."""
    return {
        "holds": all(one.holds for one in audits) and not any(one.holds for one in controls),
        "audits": [_plain(one) for one in audits],
        "controls": [_plain(one) for one in controls],
    }


def _plain(one: "ExactFinding | StatisticalFinding") -> dict[str, Any]:
    """Return a finding without fractions and infinity, which JSON does not know; null stands for an infinite ε."""
    values = asdict(one)
    for key, value in values.items():
        if key in ("worst_delta", "worst_failure") and value is not None:
            values[key] = float(value)
        elif isinstance(value, float) and math.isinf(value):
            values[key] = None
    return values | {"holds": one.holds}


def _row(name: str, *columns: object) -> str:
    cells = [f"{one:.4g}" if isinstance(one, float) else str(one) for one in columns]
    return f"{name:<62}" + "".join(f"{cell:>11}" for cell in cells)


def _name(one: "ExactFinding | StatisticalFinding") -> str:
    from synthmap.audit.mechanism import AS_IT_IS

    name = one.world if one.mechanism == AS_IT_IS.name else f"{one.mechanism}"
    return f"{' ' if one.holds else '✗'} {name}"


def _exact_line(one: "ExactFinding | None") -> str:
    """Return a line of the table, or its head."""
    if one is None:
        return _row("  world", "tables", "ε stated", "true", "δ stated", "true", "pDP stated", "true")
    pdp: tuple[float, ...] = ()
    if one.promised_failure is not None and one.worst_failure is not None:
        pdp = (one.promised_failure, float(one.worst_failure))
    return _row(
        _name(one),
        one.tables,
        one.promised_epsilon,
        one.worst_epsilon,
        one.promised_delta,
        float(one.worst_delta),
        *pdp,
    )


def _statistical_line(one: "StatisticalFinding | None") -> str:
    """Return a line of the table, or its head."""
    if one is None:
        return _row("  world", "draws", "ε stated", "proved", "δ stated") + "  event"
    numbers = (one.draws, one.promised_epsilon, one.epsilon_at_least, one.promised_delta)
    return f"{_row(_name(one), *numbers)}  {one.event}"
