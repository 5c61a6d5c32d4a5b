"""Keys of a service under test."""

from starlette.testclient import TestClient

from synthmap.catalog.keys import Role, add_key


def bearer(client: TestClient, role: Role = Role.CURATOR) -> dict[str, str]:
    """Return the headers of a new key of the service behind `client`."""
    return {"Authorization": f"Bearer {add_key(client.app.state.service.catalog, 'test', role)}"}
