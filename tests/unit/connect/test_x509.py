"""Certificates parsed from DER, compared with OpenSSL's output."""

import re
import shutil
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.providers.connect.client.rest import parse_certificate

SUBJECTS = [
    "/CN=localhost",
    "/C=DE/O=Acme, Inc./OU=Kafka+CN=connect-1",
    "/DC=example/DC=org/CN=münchen",
    "/2.5.4.5=42/CN=with a serial number",
]


def run_openssl(folder: Path, *words: str) -> str:
    tool = shutil.which("openssl")
    if tool is None:
        pytest.skip("needs openssl")
    ran = subprocess.run([tool, *words], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout


def split_name(name: str) -> list[list[str]]:
    """Return the parts of a name; the order of parts that belong together is arbitrary."""
    return [sorted(part.split("+")) for part in re.split(r"(?<!\\),", name)]


@pytest.fixture(scope="module", params=SUBJECTS)
def der(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    folder = tmp_path_factory.mktemp("x509")
    words = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-utf8")
    ends = "30" if request.param == SUBJECTS[0] else "20000"  # after 2049, times have another format
    out = ("-multivalue-rdn", "-days", ends, "-subj", request.param, "-keyout", "key", "-out", "cert")
    run_openssl(folder, *words, *out)
    return folder, ssl.PEM_cert_to_DER_cert((folder / "cert").read_text())


def test_parse_certificate_agrees_with_openssl(der: tuple[Path, bytes]) -> None:
    folder, data = der
    found = parse_certificate(data)
    options = ("-nameopt", "RFC2253,-esc_msb,utf8", "-dateopt", "iso_8601", "-fingerprint", "-sha256")
    said = dict(
        line.split("=", 1)
        for line in run_openssl(
            folder, "x509", "-in", "cert", "-noout", "-subject", "-issuer", "-dates", *options
        ).splitlines()
    )
    assert split_name(found.subject) == split_name(said["subject"].strip().replace("serialNumber", "2.5.4.5"))
    assert found.issuer == found.subject
    assert found.sha256 == said["sha256 Fingerprint"].replace(":", "").lower()
    for moment, name in ((found.not_before, "notBefore"), (found.not_after, "notAfter")):
        assert moment == datetime.strptime(said[name], "%Y-%m-%d %H:%M:%SZ").replace(tzinfo=UTC)


def test_parse_certificate_rejects_truncated_data(der: tuple[Path, bytes]) -> None:
    _, data = der
    for length in range(0, len(data), 7):
        with pytest.raises(ValueError, match=r"."):
            parse_certificate(data[:length])


@given(st.binary(max_size=200))
def test_parse_certificate_rejects_any_other_data(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_certificate(data)
