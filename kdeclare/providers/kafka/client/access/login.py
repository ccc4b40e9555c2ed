"""Check a SCRAM password by logging in with it."""

from collections.abc import Mapping

from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.client.connection_problems import AUTHENTICATION_FAILED

_TIMEOUT_S = 10.0


def can_log_in(
    bootstrap_servers: str, client_config: Mapping[str, str], user: str, mechanism: str, password: str
) -> bool:
    """Return whether brokers accept a password.

    client_config: the client properties for all settings except the mechanism, the user and the password.

    Raises Fault if the client connects without SASL, or if no broker responds.
    """
    from kdeclare.providers.kafka.client.connect import (
        connect,  # avoids an import cycle
    )

    protocol = client_config.get("security.protocol", "PLAINTEXT").strip().upper()
    if not protocol.startswith("SASL"):
        reason = f"kdeclare connects with security.protocol={protocol}, so it cannot log in with a password"
        raise Fault("LOGIN_NOT_POSSIBLE", reason)
    options = f'username="{_escape(user)}" password="{_escape(password)}"'
    login = f"org.apache.kafka.common.security.scram.ScramLoginModule required {options};"
    config = {**client_config, "sasl.mechanism": mechanism, "sasl.jaas.config": login}
    try:
        connect(bootstrap_servers, config, timeout_s=_TIMEOUT_S).close()
    except KdeclareError as problem:
        reason = summarize_diagnostics(problem.diagnostics)
        if any(AUTHENTICATION_FAILED in d.detail for d in problem.diagnostics):
            return False
        raise Fault("LOGIN_NOT_POSSIBLE", reason) from None
    return True


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
