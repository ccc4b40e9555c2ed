"""Send bare requests to a Connect worker, for comparison: ``raw URL CA_FILE [CONNECTOR BATCH_SIZE]``."""

import json
import ssl
import sys
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import urlsplit


def main(url: str, ca_file: str, changed: str = "", batch_size: str = "") -> None:
    """Read all connectors with one request. If a connector is named, change its config with a second one."""
    address = urlsplit(url)
    context = ssl.create_default_context(cafile=ca_file)
    connection = HTTPSConnection(address.hostname or "", address.port, timeout=60, context=context)
    listed = _send(connection, "GET", "/connectors?expand=info&expand=status")
    if changed:
        config = {**listed[changed]["info"]["config"], "batch.size": batch_size}
        _send(connection, "PUT", f"/connectors/{changed}/config", json.dumps(config))
    connection.close()
    print(len(listed))


def _send(connection: HTTPSConnection, method: str, path: str, body: str | None = None) -> Any:
    headers = {} if body is None else {"Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    content = response.read()
    if response.status >= 300:
        raise SystemExit(f"{method} {path}: {response.status} {content[:500]!r}")
    return json.loads(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
