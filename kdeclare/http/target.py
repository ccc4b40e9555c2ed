"""The data for connecting to an HTTP endpoint: its URLs, TLS files and headers."""

import ssl
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.scrubber import SCRUBBER


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """The data for connecting to one endpoint. References in the values are already resolved.

    urls: the URLs of equivalent servers, without a trailing slash.
    ca_file: a PEM file with the CA certificates; None for the trust store of the system.
    cert_file, key_file: PEM files of the client certificate; None without a client certificate.
    folder: the folder to which the paths of the files are relative.
    headers: the headers of every request, as (name, value). The values can be secrets.
    """

    urls: tuple[str, ...]
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    folder: Path = Path()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def build_headers(self) -> Mapping[str, str]:
        """Return the headers, and register their values so that no output contains them.

        Raises KdeclareError if HTTP does not allow the value of a header.
        """
        headers = {name: _validate_header(name, value) for name, value in self.headers}
        for value in headers.values():
            SCRUBBER.register(value)
            SCRUBBER.register(value.partition(" ")[2])  # without "Basic" or "Bearer"
        return headers

    def create_tls_context(self) -> ssl.SSLContext:
        """Return a TLS context that verifies servers. Raises KdeclareError if a file cannot be used."""
        if self.ca_file is None:
            context = ssl.create_default_context()
        else:
            path = self._require_file(self.ca_file, "caFile")
            try:
                context = ssl.create_default_context(cafile=path)
            except ssl.SSLError:
                raise _build_file_error("caFile", self.ca_file, "it contains no PEM certificates") from None
        self._load_client_certificate(context)
        return context

    def create_unverified_tls_context(self) -> ssl.SSLContext:
        """Return a TLS context without verification, which must only be used to read certificates.

        Raises KdeclareError if a file cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._load_client_certificate(context)
        return context

    def _load_client_certificate(self, context: ssl.SSLContext) -> None:
        if self.cert_file is None:
            return
        cert = self._require_file(self.cert_file, "certFile")
        key = self._require_file(self.key_file, "keyFile") if self.key_file else None
        try:
            context.load_cert_chain(cert, key, password=lambda: "")  # otherwise, OpenSSL asks on the terminal
        except (ssl.SSLError, ValueError):
            reason = "it is not PEM, the key is encrypted, or the key does not match the certificate"
            raise _build_file_error("certFile", self.cert_file, reason) from None

    def _require_file(self, file: str, setting: str) -> Path:
        path = self.folder / file
        try:
            path.open("rb").close()
        except OSError as e:
            raise _build_file_error(setting, file, (e.strerror or "it cannot be opened").lower()) from None
        return path


def _validate_header(name: str, value: str) -> str:
    """Return the value of a header if HTTP allows the value. Raises KdeclareError if it does not.

    The error does not contain the value.
    """
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    raise KdeclareError(
        error(
            "connect-header",
            "Header cannot be sent",
            f"The resolved value of the header '{name}' starts or ends with a space, or contains characters "
            "that HTTP headers do not allow.",
            hint="Remove these characters from the environment variable or file that contains the value. A "
            "line break at the end of a file is allowed.",
        )
    )


def _build_file_error(setting: str, file: str, reason: str) -> KdeclareError:
    return KdeclareError(
        error(
            "connect-tls-file",
            "TLS file cannot be used",
            f"{setting} '{file}' cannot be used: {reason}.",
            hint="Check the path, and use a PEM file. Paths in manifests are relative to the project folder.",
        )
    )
