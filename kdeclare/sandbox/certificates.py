"""Certificates made on the spot with Java's keytool, by an authority of the sandbox's own."""

import shutil
import subprocess
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.layout import AuthorityFiles
from kdeclare.sandbox.settings import HOST

# Protects nothing: whoever can read the keystore can read this line. Java wants a password all the same.
KEYSTORE_PASSWORD = "kdeclare-sandbox"

_AUTHORITY_DAYS = 3650
DAYS = 365

# Each call is a JVM of its own that lives for half a second.
_FAST = ("-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-J-Xshare:auto")
_TIMEOUT_SECONDS = 60
_KEY = ("-keyalg", "EC", "-groupname", "secp256r1")


def make_authority(java: str, files: AuthorityFiles) -> None:
    """Make the authority if it is not there. Raise KdeclareError ``sandbox-certificates``."""
    if not files.truststore.exists():
        _make_authority(java, files)


def issue(
    java: str, files: AuthorityFiles, keystore: Path, common_name: str, days: int = DAYS, *, days_ago: int = 0
) -> None:
    """Make a keystore with a new key and a certificate of it for 127.0.0.1 and localhost.

    The authority signs it, for so many days from ``days_ago`` on; client authentication may use it too.
    Its password is KEYSTORE_PASSWORD. Raise KdeclareError ``sandbox-certificates``.
    """
    keystore.parent.mkdir(parents=True, exist_ok=True)
    # keytool signs with a key of the same file only: the authority's is in there for a moment.
    unfinished = keystore.with_name(keystore.name + ".new")
    shutil.copyfile(files.authority, unfinished)
    made = ["-genkeypair", "-alias", "server", "-signer", "ca", *_KEY, "-dname", f"CN={common_name}"]
    made += ["-ext", f"san=ip:{HOST},dns:localhost", "-ext", "eku=serverAuth,clientAuth"]
    if days_ago:
        made += ["-startdate", f"-{days_ago}d"]
    _keytool(java, unfinished, *made, "-validity", str(days))
    _keytool(java, unfinished, "-delete", "-alias", "ca")
    unfinished.replace(keystore)


def _make_authority(java: str, files: AuthorityFiles) -> None:
    """The truststore is made last, so that an interrupted run can be repeated."""
    files.folder.mkdir(parents=True, exist_ok=True)
    files.authority.unlink(missing_ok=True)
    made = ["-genkeypair", "-alias", "ca", *_KEY, "-dname", "CN=kdeclare sandbox"]
    made += ["-ext", "bc:critical=ca:true,pathlen:0", "-ext", "ku:critical=keyCertSign"]
    _keytool(java, files.authority, *made, "-validity", str(_AUTHORITY_DAYS))
    _keytool(java, files.authority, "-exportcert", "-rfc", "-alias", "ca", "-file", str(files.authority_pem))
    unfinished = files.truststore.with_name(files.truststore.name + ".new")
    unfinished.unlink(missing_ok=True)
    imported = ["-importcert", "-noprompt", "-alias", "ca", "-file", str(files.authority_pem)]
    _keytool(java, unfinished, *imported)
    unfinished.replace(files.truststore)


def _keytool(java: str, keystore: Path, *arguments: str) -> None:
    # What is on PATH can be a link to Java alone; where it leads to, keytool stands beside it.
    tool = Path(java).resolve().with_name("keytool")
    command = [str(tool), *_FAST, *arguments, "-keystore", str(keystore), "-storetype", "PKCS12"]
    command += ["-storepass", KEYSTORE_PASSWORD]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _not_made(f"{tool} does not run: {problem}") from problem
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()
        raise _not_made(f"{tool} ended with {done.returncode} ({arguments[0]}):\n{said}")


def _not_made(why: str) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-certificates",
            "Certificates could not be made",
            f"The certificates of a sandbox are made with Java's keytool. {why}",
            hint="Check that the sandbox's folder can be written to, and that Java is whole.",
        )
    )
