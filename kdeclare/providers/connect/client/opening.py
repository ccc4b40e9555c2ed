"""Opening a group of workers: its files, its references, its TLS."""

import ssl
from collections.abc import Callable
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.scrubber import SCRUBBER
from kdeclare.providers.connect.client.rest import RestWorkers
from kdeclare.providers.connect.worker_state import WorkerGroup


def opened(
    group: WorkerGroup, folder: Path, resolve: Callable[[str], str], timeout_s: float = 10.0
) -> RestWorkers:
    """The workers of ``group``; nothing is sent yet.

    folder: what its files are relative to. resolve: the value of a header's reference.
    timeout_s: how long one worker may take to answer. Raises KdeclareError.
    """
    context = _trusting(group, folder)
    showing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    showing.check_hostname = False
    showing.verify_mode = ssl.CERT_NONE
    for each in (context, showing):
        _identify(each, group, folder)
    headers = {name: _sendable(name, resolve(reference)) for name, reference in group.headers}
    for value in headers.values():
        SCRUBBER.register(value)
        SCRUBBER.register(value.partition(" ")[2])  # without "Basic" or "Bearer"
    return RestWorkers(group.urls, context=context, showing=showing, headers=headers, timeout_s=timeout_s)


def _sendable(name: str, value: str) -> str:
    """A header's value. Raises KdeclareError, which does not repeat it, where HTTP has no such value."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    raise KdeclareError(
        error(
            "connect-header",
            "A header cannot be sent",
            f"What stands behind the header '{name}' has blanks around it, or holds what no header can hold.",
            hint="Take that out of the variable or the file; a line break at a file's end is no trouble.",
        )
    )


def _trusting(group: WorkerGroup, folder: Path) -> ssl.SSLContext:
    if group.ca_file is None:
        return ssl.create_default_context()
    path = _there(folder, group.ca_file, "caFile")
    try:
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise _unusable("caFile", group.ca_file, "it holds no certificates in PEM") from None


def _identify(context: ssl.SSLContext, group: WorkerGroup, folder: Path) -> None:
    """Show a certificate of one's own, if there is one."""
    if group.cert_file is None:
        return
    cert = _there(folder, group.cert_file, "certFile")
    key = _there(folder, group.key_file, "keyFile") if group.key_file else None
    try:
        context.load_cert_chain(cert, key, password=lambda: "")  # or it would ask on the terminal
    except (ssl.SSLError, ValueError):
        why = "it is no PEM, its key is under a password, or the key is another certificate's"
        raise _unusable("certFile", group.cert_file, why) from None


def _there(folder: Path, file: str, field: str) -> Path:
    path = folder / file
    try:
        path.open("rb").close()
    except OSError as e:
        raise _unusable(field, file, (e.strerror or "it cannot be opened").lower()) from None
    return path


def _unusable(field: str, file: str, why: str) -> KdeclareError:
    return KdeclareError(
        error(
            "connect-tls-file",
            "A file for the connection to Connect workers cannot be used",
            f"{field} '{file}' cannot be used: {why}.",
            hint="In a manifest it is relative to the project's folder; keys and certificates are PEM.",
        )
    )
