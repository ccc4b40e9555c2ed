"""Who gets into a secure sandbox, and how: certificates made with keytool, and logins as properties."""

import shutil
import subprocess
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.layout import AuthorityFiles, SecurityFiles
from kdeclare.sandbox.settings import HOST, SandboxSettings

# Protects nothing: whoever can read the keystore can read this line. Java wants a password all the same.
KEYSTORE_PASSWORD = "kdeclare-sandbox"

_AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365

# Each call is a JVM of its own that lives for half a second.
_FAST = ("-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-J-Xshare:auto")
_TIMEOUT_SECONDS = 60
_KEY = ("-keyalg", "EC", "-groupname", "secp256r1")


def create_authority(java: str, files: AuthorityFiles) -> None:
    """Make the authority if it is not there. Raise KdeclareError ``sandbox-certificates``."""
    if not files.truststore.exists():
        _create_authority_files(java, files)


def issue_keystore(
    java: str,
    files: AuthorityFiles,
    keystore: Path,
    common_name: str,
    days: int = CERTIFICATE_DAYS,
    *,
    days_ago: int = 0,
) -> None:
    """Make a keystore with a new key and a certificate of it for 127.0.0.1 and localhost.

    The authority signs it, for so many days from ``days_ago`` on; client authentication may use it too.
    Its password is KEYSTORE_PASSWORD. Raise KdeclareError ``sandbox-certificates``.
    """
    keystore.parent.mkdir(parents=True, exist_ok=True)
    # keytool signs with a key of the same file only: the authority's is in there for a moment.
    temporary_keystore = keystore.with_name(keystore.name + ".new")
    shutil.copyfile(files.authority, temporary_keystore)
    arguments = ["-genkeypair", "-alias", "server", "-signer", "ca", *_KEY, "-dname", f"CN={common_name}"]
    arguments += ["-ext", f"san=ip:{HOST},dns:localhost", "-ext", "eku=serverAuth,clientAuth"]
    if days_ago:
        arguments += ["-startdate", f"-{days_ago}d"]
    _run_keytool(java, temporary_keystore, *arguments, "-validity", str(days))
    _run_keytool(java, temporary_keystore, "-delete", "-alias", "ca")
    temporary_keystore.replace(keystore)


def _create_authority_files(java: str, files: AuthorityFiles) -> None:
    """The truststore is made last, so that an interrupted run can be repeated."""
    files.folder.mkdir(parents=True, exist_ok=True)
    files.authority.unlink(missing_ok=True)
    arguments = ["-genkeypair", "-alias", "ca", *_KEY, "-dname", "CN=kdeclare sandbox"]
    arguments += ["-ext", "bc:critical=ca:true,pathlen:0", "-ext", "ku:critical=keyCertSign"]
    _run_keytool(java, files.authority, *arguments, "-validity", str(_AUTHORITY_DAYS))
    _run_keytool(
        java, files.authority, "-exportcert", "-rfc", "-alias", "ca", "-file", str(files.authority_pem)
    )
    temporary_truststore = files.truststore.with_name(files.truststore.name + ".new")
    temporary_truststore.unlink(missing_ok=True)
    import_arguments = ["-importcert", "-noprompt", "-alias", "ca", "-file", str(files.authority_pem)]
    _run_keytool(java, temporary_truststore, *import_arguments)
    temporary_truststore.replace(files.truststore)


def _run_keytool(java: str, keystore: Path, *arguments: str) -> None:
    # What is on PATH can be a link to Java alone; where it leads to, keytool stands beside it.
    tool = Path(java).resolve().with_name("keytool")
    command = [str(tool), *_FAST, *arguments, "-keystore", str(keystore), "-storetype", "PKCS12"]
    command += ["-storepass", KEYSTORE_PASSWORD]
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _build_certificates_error(f"{tool} does not run: {problem}") from problem
    if completed.returncode != 0:
        output = (completed.stdout + completed.stderr).strip()
        raise _build_certificates_error(
            f"{tool} ended with {completed.returncode} ({arguments[0]}):\n{output}"
        )


def _build_certificates_error(reason: str) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-certificates",
            "Certificates could not be made",
            f"The certificates of a sandbox are made with Java's keytool. {reason}",
            hint="Check that the sandbox's folder can be written to, and that Java is whole.",
        )
    )


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


def get_password(user: str) -> str:
    """A user's password. It keeps nobody out: it is the same in every sandbox, and stands here."""
    return f"{user}-secret"


def broker_properties(files: SecurityFiles) -> dict[str, str]:
    """What every broker of a secure sandbox has beside its listeners."""
    logins = {"PLAIN": _format_jaas("PLAIN", **{f"user_{user}": get_password(user) for user in USERS})}
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


def build_format_arguments() -> list[str]:
    """What Kafka's storage tool has to be told of users: with SCRAM they are part of the metadata."""
    arguments = []
    for mechanism in SCRAM:
        for user in USERS:
            arguments += ["--add-scram", f"{mechanism}=[name={user},password={get_password(user)}]"]
    return arguments


def build_client_properties(files: SecurityFiles, settings: SandboxSettings, user: str) -> dict[str, str]:
    """How a user's client gets in: encrypted, with SCRAM; for kdeclare and Kafka's own tools alike."""
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
