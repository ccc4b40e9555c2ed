"""Certificates created with Java's keytool at runtime: two authorities, and what they issue."""

import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kdeclare.java import find_java

PASSWORD = "changeit"
ODD_STORE_PASSWORD = "of-the-store"
ODD_KEY_PASSWORD = "of-the-key"

_NAMES = "san=ip:127.0.0.1,dns:localhost"
_OTHER_NAMES = "san=dns:elsewhere.example"
_KEY = ("-keyalg", "EC", "-groupname", "secp256r1")
_PAST = ("-startdate", "-10d", "-validity", "1")
# What the workers' authority issues. The first is for clients; keys and dates differ.
_ISSUED = {
    "client": (),
    "a": (),
    "b": (),
    "static": (),
    "expired": _PAST,
    "elsewhere": (),
    "signing": ("-ext", "ku=digitalSignature,keyCertSign"),
}
_FOREIGN = {"foreign": ()}


@dataclass(frozen=True)
class Certificates:
    """A folder of PKCS12 stores, by name, and the SHA-256 of each one's certificate, in hex."""

    folder: Path
    sha256: dict[str, str]

    def store(self, name: str) -> Path:
        """Return the store ``static``, ``a``, ``b``, ``expired`` or ``foreign``, or one of the following.

        ``elsewhere``: for another host; ``signing``: a CA certificate; ``mixed``: with a key that does not
        match.
        """
        return self.folder / f"{name}.p12"

    @property
    def odd(self) -> Path:
        """``a`` as JKS, with different passwords for the store and the key."""
        return self.folder / "odd.jks"

    @property
    def trust(self) -> Path:
        """A truststore with only the workers' authority."""
        return self.folder / "trust.p12"

    @property
    def foreign_trust(self) -> Path:
        """A truststore with only the other authority."""
        return self.folder / "foreign-trust.p12"

    @property
    def fast_trust(self) -> Path:
        """`trust` with few iterations, so that it opens fast; ``fast`` is the same for ``a``."""
        return self.folder / "fast-trust.p12"

    @property
    def authority_pem(self) -> Path:
        """The certificates with which clients verify the workers."""
        return self.folder / "ca.pem"

    @property
    def client_pem(self) -> Path:
        """The client's key and chain."""
        return self.folder / "client.pem"


def make(folder: Path) -> Certificates:
    """Create all of them."""
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: _create_authority(folder, name), ("ca", "other-ca")))
        trusts = ((folder / "trust.p12", "ca"), (folder / "foreign-trust.p12", "other-ca"))
        trusting = [pool.submit(_create_truststore, store, folder / f"{name}.pem") for store, name in trusts]
        issuing = [
            pool.submit(_issue_certificate, folder, authority, name, options)
            for authority, issued in (("ca", _ISSUED), ("other-ca", _FOREIGN))
            for name, options in issued.items()
        ]
        for done in (*trusting, *issuing):
            done.result()
    names = [*_ISSUED, *_FOREIGN]
    source = Path(__file__).with_name("Stores.java")
    said = _run([find_java(), str(source), PASSWORD, str(folder), *names])
    return Certificates(folder, dict(zip(names, said.split(), strict=True)))


def _create_authority(folder: Path, name: str) -> None:
    store = folder / f"{name}.p12"
    _run_keytool(store, "-genkeypair", "-alias", "ca", "-dname", f"CN={name}", "-ext", "bc:c", *_KEY)
    _run_keytool(store, "-exportcert", "-rfc", "-alias", "ca", "-file", str(folder / f"{name}.pem"))


def _create_truststore(store: Path, pem: Path) -> None:
    _run_keytool(store, "-importcert", "-noprompt", "-alias", "ca", "-file", str(pem))


def _issue_certificate(folder: Path, authority: str, name: str, options: Sequence[str]) -> None:
    # keytool signs with a key of the same store; Stores.java removes it afterwards.
    store = folder / f"{name}.p12"
    shutil.copyfile(folder / f"{authority}.p12", store)
    names = ("-dname", f"CN={name}", "-ext", _OTHER_NAMES if name == "elsewhere" else _NAMES)
    _run_keytool(store, "-genkeypair", "-alias", "worker", "-signer", "ca", *names, *_KEY, *options)


def _run_keytool(store: Path, *words: str) -> None:
    keytool = Path(find_java()).resolve().with_name("keytool")
    fast = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
    places = ("-keystore", str(store), "-storetype", "PKCS12", "-storepass", PASSWORD)
    _run([str(keytool), *fast, *words, *places])


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
