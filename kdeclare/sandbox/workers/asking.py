"""Asking a Connect worker whether it can be used, over its own REST listener."""

import http.client
import ssl

from kdeclare.sandbox.settings import HOST


def is_healthy(port: int, timeout: float) -> bool:
    """Whether the worker says within so many seconds that it is healthy (KIP-1017).

    What does its work answers that (DistributedHerder), not before it has joined its group, and so
    knows the leader. Whose process it is, is known from its record; its certificate may be that of any
    authority by now, so that it is not checked.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(HOST, port, timeout=timeout, context=context)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
