"""``synthmap keys``: who may use the service."""

from enum import StrEnum
from typing import Annotated

import typer

from synthmap.commands.shared import STORE, AsJson, Database, Store, opened, show

app = typer.Typer(no_args_is_help=True, help="Keys of the service: make, list, revoke.")


class RoleName(StrEnum):
    """Roles, as in `synthmap.catalog.keys`, which needs libraries that --help does without."""

    READER = "reader"
    ANALYST = "analyst"
    CURATOR = "curator"


@app.command()
def add(
    name: Annotated[str, typer.Option(help="Whose key it is.")],
    role: Annotated[RoleName, typer.Option(help="What its holder may do; each may what those before it may.")],
    store: Store = STORE,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Make a key and print its secret, once."""
    with opened(store, database) as catalog:
        from synthmap.catalog.keys import Role, add_key

        secret = add_key(catalog, name, Role(role.value))
    values = {"id": secret.split("_")[1], "name": name, "role": role.value, "secret": secret}
    show(values, as_json, f"{secret}\nThis is shown once. Send it as `Authorization: Bearer …` or as a password.")


@app.command("list")
def list_(store: Store = STORE, database: Database = "", as_json: AsJson = False) -> None:
    """List the keys, revoked ones too."""
    with opened(store, database) as catalog:
        from synthmap.catalog.keys import list_keys

        found = list_keys(catalog)
    keys = [
        {
            "id": key.id,
            "name": key.name,
            "role": key.role.value,
            "created": key.created.isoformat(timespec="seconds"),
            "revoked": key.revoked and key.revoked.isoformat(timespec="seconds"),
        }
        for key in found
    ]
    lines = [
        f"{key['id']}  {key['role']:<8} {key['created']}  {key['name']}"
        + (f"  (revoked {key['revoked']})" if key["revoked"] else "")
        for key in keys
    ]
    show({"keys": keys}, as_json, "\n".join(lines) or "no keys")


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, not its secret.")],
    store: Store = STORE,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Let a key open nothing from now on."""
    with opened(store, database) as catalog:
        from synthmap.catalog.keys import revoke_key

        key = revoke_key(catalog, id)
    show({"id": key.id, "revoked": True}, as_json, f"key {key.id} ({key.name}) is revoked")
