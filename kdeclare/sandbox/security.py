"""Authentication in a secure sandbox: the settings of brokers, and the credentials of users."""

from kdeclare.sandbox.certificates import KEYSTORE_PASSWORD
from kdeclare.sandbox.layout import SecurityFiles
from kdeclare.sandbox.settings import SandboxSettings

ADMIN, READER = "admin", "reader"
USERS = (ADMIN, READER)
"""The users of a secure sandbox.

ACLs do not restrict the user ``admin``. They allow the user ``reader`` only to read metadata.
"""

WORKER = "connect"
"""The user of the Connect workers of a secure sandbox. ACLs allow this user only what workers need."""

_LOGINS = (*USERS, WORKER)

BROKER = "broker"
"""The name in the certificates of the brokers. It is also the principal of the brokers."""

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM)

_LOGIN = "org.apache.kafka.common.security."
_MODULES = {"PLAIN": f"{_LOGIN}plain.PlainLoginModule"} | dict.fromkeys(
    SCRAM, f"{_LOGIN}scram.ScramLoginModule"
)


def get_password(user: str) -> str:
    """Return the password of a user. The password is public and the same in every sandbox."""
    return f"{user}-secret"


def broker_properties(files: SecurityFiles) -> dict[str, str]:
    """Return the security settings of the brokers in a secure sandbox, except for the listener settings."""
    logins = {"PLAIN": _format_jaas("PLAIN", **{f"user_{user}": get_password(user) for user in _LOGINS})}
    logins |= {mechanism: _format_jaas(mechanism) for mechanism in SCRAM}
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{BROKER};User:{ADMIN}",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(files.keystore),
        "ssl.keystore.password": KEYSTORE_PASSWORD,
        "ssl.key.password": KEYSTORE_PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(files.truststore),
        "ssl.truststore.password": KEYSTORE_PASSWORD,
        # Client certificates are optional on the SSL listener. Brokers always present their certificates.
        "listener.name.ssl.ssl.client.auth": "requested",
        "listener.name.controller.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    } | {
        f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config": login
        for listener in ("sasl_ssl", "sasl_plaintext")
        for mechanism, login in logins.items()
    }


def build_format_arguments() -> list[str]:
    """Return the arguments of Kafka's storage tool that add SCRAM credentials of users to the metadata."""
    arguments = []
    for mechanism in SCRAM:
        for user in _LOGINS:
            arguments += ["--add-scram", f"{mechanism}=[name={user},password={get_password(user)}]"]
    return arguments


def build_client_properties(files: SecurityFiles, settings: SandboxSettings, user: str) -> dict[str, str]:
    """Return client properties (SASL_SSL with SCRAM) for a user who runs kdeclare and Kafka's own tools."""
    mechanism = SCRAM[-1]
    return {
        "bootstrap.servers": settings.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": _format_jaas(mechanism, username=user, password=get_password(user)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority_pem),
    }


def _format_jaas(mechanism: str, **options: str) -> str:
    return " ".join([_MODULES[mechanism], "required", *(f'{k}="{v}"' for k, v in options.items())]) + ";"
