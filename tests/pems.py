"""Certificates that tests create at run time, so that no key is stored in the repository."""

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with a certificate, its key, and the key encrypted with the password ``secret``."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("pem")

    def run(*words: str) -> None:
        subprocess.run([openssl, *words], cwd=folder, check=True, capture_output=True)

    run(
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-keyout",
        "key",
        "-out",
        "cert",
    )
    run("pkcs8", "-topk8", "-in", "key", "-passout", "pass:secret", "-out", "locked")
    for key in ("key", "locked"):
        (folder / f"store-{key}").write_text((folder / key).read_text() + (folder / "cert").read_text())
    run("pkcs12", "-export", "-in", "cert", "-inkey", "key", "-passout", "pass:secret", "-out", "store.p12")
    run("pkcs12", "-export", "-in", "cert", "-nokeys", "-passout", "pass:secret", "-out", "bare.p12")
    return folder
