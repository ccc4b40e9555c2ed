"""A Kerberos server (MIT krb5kdc) on this machine, with its principals, keytabs and tickets."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import free_port
from tests.polling import wait_for

REALM = "SHOP.TEST"
HOST = "127.0.0.1"
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
"""Debian installs the programs of administrators in /usr/sbin, which is not on the path of all users."""

_CLIENT_CONF = """
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = {host}:{port}
  }}
"""
_SERVER_CONF = """
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = {host}:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principals
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    max_life = 1h
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
"""


def find_missing_part() -> str | None:
    """Return why there can be no tests with Kerberos on this machine, or None."""
    if importlib.util.find_spec("gssapi") is None:
        return "the extra kerberos is not installed (make kerberos)"
    for program in ("krb5kdc", "kdb5_util", "kadmin.local", "kinit"):
        if shutil.which(program, path=_PATH) is None:
            return f"{program} is not installed (make kerberos)"
    return None


@dataclass(frozen=True)
class Kdc:
    """A running Kerberos server. environ: the variables with which programs use it."""

    folder: Path
    environ: dict[str, str]

    @property
    def client_conf(self) -> Path:
        """The file krb5.conf of clients and brokers."""
        return self.folder / "krb5.conf"

    def create_keytab(self, principal: str) -> Path:
        """Add a principal with random keys, and write a keytab with them."""
        keytab = self.folder / f"{principal.replace('/', '_')}.keytab"
        self.run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")
        return keytab

    def log_in(self, principal: str, keytab: Path, cache: Path) -> None:
        """Get a ticket, and write it to a cache."""
        self.run("kinit", "-k", "-t", os.fspath(keytab), "-c", os.fspath(cache), principal)

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of Kerberos to its end."""
        path = shutil.which(program, path=_PATH)
        assert path is not None
        done = subprocess.run(
            [path, *arguments],
            env={**os.environ, **self.environ},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def run_kdc(folder: Path) -> Iterator[Kdc]:
    """Run a Kerberos server with an empty realm."""
    port = free_port(1)
    values = {"realm": REALM, "host": HOST, "port": port, "folder": folder}
    (folder / "krb5.conf").write_text(_CLIENT_CONF.format(**values))
    (folder / "kdc.conf").write_text(_SERVER_CONF.format(**values))
    environ = {
        "KRB5_CONFIG": str(folder / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        "KRB5CCNAME": f"FILE:{folder}/no-tickets",
        "KRB5_CLIENT_KTNAME": f"FILE:{folder}/no-keys",
    }
    kdc = Kdc(folder, environ)
    kdc.run("kdb5_util", "create", "-s", "-P", "test", "-r", REALM)
    program = shutil.which("krb5kdc", path=_PATH)
    assert program is not None
    server = subprocess.Popen([program, "-n"], env={**os.environ, **environ})
    try:
        key = kdc.create_keytab("probe")

        def can_log_in() -> bool:
            assert server.poll() is None, "the Kerberos server has ended"
            return _can_log_in(kdc, key)

        wait_for(can_log_in)
        yield kdc
    finally:
        server.terminate()
        server.wait(30)


def _can_log_in(kdc: Kdc, keytab: Path) -> bool:
    try:
        kdc.log_in("probe", keytab, kdc.folder / "probe-tickets")
    except AssertionError:
        return False
    return True
