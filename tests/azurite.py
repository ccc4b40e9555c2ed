"""Azurite, Microsoft's emulator of Azure Blob Storage, for tests on machines where it is installed."""

import base64
import hashlib
import hmac
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit

from tests.polling import wait_for
from tests.ports import reserve_port

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The published key of the emulator's only account."""


@contextmanager
def run_azurite(folder: Path) -> Iterator[str]:
    """Run Azurite with its data in a folder, and yield the URL of its account."""
    port = reserve_port()
    command = f"azurite-blob --blobHost 127.0.0.1 --blobPort {port} --skipApiVersionCheck --disableTelemetry"
    process = subprocess.Popen([*command.split(), "--silent", "--location", str(folder)])
    try:
        url = f"http://127.0.0.1:{port}/"
        wait_for(
            lambda: _responds(url) or process.poll() is not None, every=0.1, problem="Azurite did not start"
        )
        assert process.poll() is None, "Azurite ended"
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
    finally:
        process.kill()
        process.wait()


def _responds(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=10).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def create_container(url: str, name: str) -> None:
    """Create a container in the account with this URL."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    signed_headers = "\n".join(f"{name}:{value}" for name, value in headers.items())
    resource = f"/{ACCOUNT}{urlsplit(url).path}/{name}"
    text = "PUT" + "\n" * 12 + f"{signed_headers}\n{resource}\nrestype:container"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest())
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature.decode()}"
    headers["Content-Length"] = "0"
    request = urllib.request.Request(f"{url}/{name}?restype=container", headers=headers, method="PUT")
    urllib.request.urlopen(request, timeout=10).close()
