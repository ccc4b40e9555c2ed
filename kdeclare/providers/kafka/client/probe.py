"""What listens at an address, found out after a client's connection was closed without a word."""

import contextlib
import socket
import ssl
from enum import StrEnum

_PATIENCE_S = 2.0
_API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000000 ffff".replace(" ", ""))
"""ApiVersions, version 0: the one request that Kafka answers to anybody (KIP-35)."""


class Protocol(StrEnum):
    """What an address speaks."""

    KAFKA = "Kafka"
    TLS = "TLS"
    HTTP = "HTTP"
    OTHER = "another protocol"
    SILENCE = "nothing"


def probe(host: str, port: int) -> Protocol:
    """Ask twice, in clear and with TLS; four seconds at most. Never raises."""
    heard = b""
    with contextlib.suppress(OSError), socket.create_connection((host, port), _PATIENCE_S) as raw:
        raw.sendall(_API_VERSIONS)
        while len(heard) < 8 and (more := raw.recv(8)):
            heard += more
    if heard[4:8] == bytes(4):  # our correlation id, after the length
        return Protocol.KAFKA
    if heard.startswith(b"\x15\x03"):  # an alert
        return Protocol.TLS
    if heard.startswith(b"HTTP"):
        return Protocol.HTTP
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is told to whoever it is
    with contextlib.suppress(OSError), socket.create_connection((host, port), _PATIENCE_S) as raw:
        try:
            context.wrap_socket(raw, server_hostname=host).close()
        except ssl.SSLError as exc:
            # It may refuse us, say for want of a certificate, and yet speak TLS.
            if "ALERT" in str(exc):
                return Protocol.TLS
        else:
            return Protocol.TLS
    return Protocol.OTHER if heard else Protocol.SILENCE
