"""Authentication in a secure sandbox: certificates (created with keytool), and the credentials of users."""

import shutil
import subprocess
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.layout import AuthorityFiles, SecurityFiles
from kdeclare.sandbox.settings import HOST, SandboxSettings

# Java requires a password for keystores. This password protects nothing, because it is public.
KEYSTORE_PASSWORD = "kdeclare-sandbox"

_AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365

# Options for a fast start: each call of keytool starts a JVM for half a second.
_FAST = ("-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-J-Xshare:auto")
_TIMEOUT_SECONDS = 60
_KEY = ("-keyalg", "EC", "-groupname", "secp256r1")


def create_authority(java: str, files: AuthorityFiles) -> None:
    """Create the certificate authority if it is missing. Raises KdeclareError ``sandbox-certificates``."""
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
    """Create a keystore with a new key and a certificate for 127.0.0.1 and localhost.

    The authority signs the certificate, which is valid for ``days`` days, starting ``days_ago`` days ago, and
    can also be used as a client certificate. The password of the keystore is `KEYSTORE_PASSWORD`. Raises
    KdeclareError ``sandbox-certificates``.
    """
    keystore.parent.mkdir(parents=True, exist_ok=True)
    # keytool can sign only with a key in the same keystore, so the authority's key is added temporarily.
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
    """Create the files of the authority. The truststore is created last, so if it exists, all files exist."""
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
    # java on PATH may be a symbolic link. keytool is in the folder of the link's target.
    tool = Path(java).resolve().with_name("keytool")
    command = [str(tool), *_FAST, *arguments, "-keystore", str(keystore), "-storetype", "PKCS12"]
    command += ["-storepass", KEYSTORE_PASSWORD]
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _build_certificates_error(f"{tool} could not be run: {problem}") from problem
    if completed.returncode != 0:
        output = (completed.stdout + completed.stderr).strip()
        raise _build_certificates_error(
            f"{tool} exited with code {completed.returncode} ({arguments[0]}):\n{output}"
        )


def _build_certificates_error(reason: str) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-certificates",
            "Certificates could not be created",
            f"The certificates of a sandbox are created with Java's keytool. {reason}",
            hint="Check that the sandbox folder is writable and that the Java installation is complete.",
        )
    )


ADMIN, READER = "admin", "reader"
USERS = (ADMIN, READER)
"""The users of a secure sandbox.

ACLs do not restrict the admin. They allow the reader only to read metadata.
"""

WORKER = "connect"
"""The user of the Connect workers of a secure sandbox. ACLs allow this user only what workers need."""

_LOGINS = (*USERS, WORKER)

BROKER = "broker"
"""The name in the brokers' certificates, which is also the brokers' principal."""

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
