"""Log in with Kerberos (GSSAPI), using the Kerberos library of the operating system.

Requires the extra ``kerberos``, and the MIT Kerberos library.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.extras import explain_missing_extra
from kdeclare.providers.kafka.client.connection_problems import KerberosError, build_property_error
from kdeclare.providers.kafka.client.jaas import KERBEROS, parse_jaas_line

SERVICE_KEY = "sasl.kerberos.service.name"
_MODULE = "Krb5LoginModule"
_MINOR = re.compile(r"Minor \(\d+\): (.*)", re.DOTALL)
"""Matches the cause in the message of a GSSError. The first part of the message does not name the cause."""


class KerberosLogin:
    """The Kerberos login that the client properties configure.

    service: the first part of the principal of the brokers. The second part is the host of each broker.
    store: where the Kerberos library finds the credentials. If empty, it uses the environment.
    principal: the principal of the client, or None for the default of the library.
    """

    def __init__(self, service: str, store: Mapping[str, str], principal: str | None) -> None:
        self.service = service
        self._store = store
        self._principal = principal

    @cached_property
    def _memory_cache(self) -> str:
        return f"MEMORY:{uuid4().hex}"

    def acquire(self) -> Any:
        """Return credentials, or None to use the credentials of the environment. Raises GSSError."""
        import gssapi

        if not self._store and self._principal is None:
            return None
        store: dict[bytes | str, bytes | str] = dict(self._store.items())
        if "client_keytab" in store:  # tickets from a keytab stay in memory
            store["ccache"] = self._memory_cache
        name = self._principal and gssapi.Name(self._principal, gssapi.NameType.kerberos_principal)
        return gssapi.Credentials(name=name or None, usage="initiate", store=store or None)


class _KerberosMechanism(SaslMechanismGSSAPI):  # type: ignore[misc]
    """Implements Kerberos for kafka-python with the credentials that a `KerberosLogin` specifies.

    kafka-python's own mechanism can only use the credentials of the environment. kafka-python passes on only
    the arguments that it knows. Therefore, ``sasl_kerberos_name`` contains the `KerberosLogin`.
    """

    def __init__(self, *, host: str, sasl_kerberos_name: KerberosLogin, **_: object) -> None:
        import gssapi

        login = sasl_kerberos_name
        self._is_done = self._is_authenticated = False
        self.auth_id = f"{login.service}@{host}"
        with _explain_errors(self.auth_id):
            name = gssapi.Name(self.auth_id, gssapi.NameType.hostbased_service)
            self.gssapi_name = name.canonicalize(gssapi.MechType.kerberos)
            self._client_ctx = gssapi.SecurityContext(
                name=self.gssapi_name, creds=login.acquire(), mech=gssapi.MechType.kerberos, usage="initiate"
            )
            self._next_token = self._client_ctx.step(None)

    def receive(self, auth_bytes: bytes) -> None:
        """Process a token from the broker. Raises KerberosError."""
        with _explain_errors(self.auth_id):
            super().receive(auth_bytes)


@contextmanager
def _explain_errors(service: str) -> Iterator[None]:
    from gssapi.raw.misc import GSSError  # gssapi.exceptions does not re-export it for type checkers

    try:
        yield
    except GSSError as exc:
        text = exc.gen_message()
        cause = _MINOR.search(text)
        raise KerberosError(f"{service}: {cause[1] if cause else text}") from exc


def build_kerberos_arguments(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return kafka-python's arguments for a login with Kerberos. Raises KdeclareError."""
    has_jaas_line = bool(properties.get("sasl.jaas.config", "").strip())
    options = parse_jaas_line(properties, KERBEROS, _MODULE) if has_jaas_line else {}
    service = properties.get(SERVICE_KEY, "").strip() or options.get("serviceName", "")
    if not service:
        raise build_property_error(
            SERVICE_KEY,
            "the property is missing",
            hint="Set it to the first part of the Kerberos principal of the brokers, usually kafka. To log "
            "in without Kerberos, set sasl.mechanism, whose default is GSSAPI.",
        )
    _require_library()
    register_sasl_mechanism(KERBEROS, _KerberosMechanism, overwrite=True)
    login = KerberosLogin(service, _find_store(options), options.get("principal"))
    return {"sasl_mechanism": KERBEROS, "sasl_kerberos_name": login}


def _find_store(options: Mapping[str, str]) -> dict[str, str]:
    """Return the location of the credentials that ``sasl.jaas.config`` specifies. Raises KdeclareError."""
    is_enabled = {name: options.get(name, "").lower() == "true" for name in ("useKeyTab", "useTicketCache")}
    if is_enabled["useKeyTab"] and "keyTab" in options:
        keytab = options["keyTab"].removeprefix("FILE:")
        if not Path(keytab).is_file():
            raise build_property_error("sasl.jaas.config", f"the keytab {keytab} does not exist")
        return {"client_keytab": f"FILE:{keytab}"}
    if is_enabled["useTicketCache"] and "ticketCache" in options:
        return {"ccache": options["ticketCache"]}
    return {}


def _require_library() -> None:
    """Raise KdeclareError if the Kerberos library or its Python package is missing."""
    try:
        import gssapi  # noqa: F401
    except ImportError as exc:
        missing_extra = explain_missing_extra(exc)
        if missing_extra is not None:
            raise KdeclareError(missing_extra) from None
        raise build_property_error(
            "sasl.mechanism",
            f"the Kerberos library cannot be loaded: {exc}",
            hint="Install MIT Kerberos, for example the Debian package libgssapi-krb5-2.",
        ) from None
