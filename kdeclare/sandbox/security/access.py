"""Who gets into a secure sandbox, and how; as properties of brokers and of clients. Pure."""

from kdeclare.sandbox.certificates import KEYSTORE_PASSWORD
from kdeclare.sandbox.layout import SecurityFiles
from kdeclare.sandbox.settings import SandboxSettings

ADMIN, READER = "admin", "reader"
USERS = (ADMIN, READER)
"""An administrator may do everything, whatever the ACLs say; a reader what they grant, which is to look."""

BROKER = "broker"
"""Whom brokers take each other for, by their certificate."""

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM)

_LOGIN = "org.apache.kafka.common.security."
_MODULES = {"PLAIN": f"{_LOGIN}plain.PlainLoginModule"} | dict.fromkeys(
    SCRAM, f"{_LOGIN}scram.ScramLoginModule"
)


def password(user: str) -> str:
    """A user's password. It keeps nobody out: it is the same in every sandbox, and stands here."""
    return f"{user}-secret"


def broker_properties(files: SecurityFiles) -> dict[str, str]:
    """What every broker of a secure sandbox has beside its listeners."""
    logins = {"PLAIN": _jaas("PLAIN", **{f"user_{user}": password(user) for user in USERS})}
    logins |= {mechanism: _jaas(mechanism) for mechanism in SCRAM}
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
        # Clients may show a certificate at the SSL listener; brokers always do, to each other as well.
        "listener.name.ssl.ssl.client.auth": "requested",
        "listener.name.controller.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    } | {
        f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config": login
        for listener in ("sasl_ssl", "sasl_plaintext")
        for mechanism, login in logins.items()
    }


def format_arguments() -> list[str]:
    """What Kafka's storage tool has to be told of users: with SCRAM they are part of the metadata."""
    told = []
    for mechanism in SCRAM:
        for user in USERS:
            told += ["--add-scram", f"{mechanism}=[name={user},password={password(user)}]"]
    return told


def client_properties(files: SecurityFiles, settings: SandboxSettings, user: str) -> dict[str, str]:
    """How a user's client gets in: encrypted, with SCRAM; for kdeclare and Kafka's own tools alike."""
    mechanism = SCRAM[-1]
    return {
        "bootstrap.servers": settings.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": _jaas(mechanism, username=user, password=password(user)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority_pem),
    }


def _jaas(mechanism: str, **options: str) -> str:
    return " ".join([_MODULES[mechanism], "required", *(f'{k}="{v}"' for k, v in options.items())]) + ";"
