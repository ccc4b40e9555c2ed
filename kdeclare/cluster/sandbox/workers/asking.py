"""Asking a Connect worker whether it can be used, over its own REST listener.

Whose process it is, is known from its record; its certificate may be that of any authority by now, so
that it is not checked here.
"""

import http.client
import ssl
import uuid

from kdeclare.cluster.sandbox.settings import HOST

_OK = 200
_NOT_FOUND = 404


def is_healthy(port: int, timeout: float) -> bool:
    """Whether the worker says within so many seconds that it has joined its group (KIP-1017)."""
    return _status_of("GET", port, "/health", timeout) == _OK


def reaches_leader(port: int, timeout: float) -> bool:
    """Whether the worker is the leader of its group, or the leader answers what it forwards.

    Connect names its leader nowhere. It forwards the deletion of a connector, though, and what the
    leader says of one that does not exist is 404.
    """
    return _status_of("DELETE", port, f"/connectors/absent-{uuid.uuid4()}", timeout) == _NOT_FOUND


def _status_of(method: str, port: int, path: str, timeout: float) -> int | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(HOST, port, timeout=timeout, context=context)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
