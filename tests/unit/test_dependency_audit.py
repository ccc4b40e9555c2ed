"""The audit of dependencies: real pip-audit, which asks a vulnerability service of the test."""

import json
import os
import ssl
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from scripts.dependencies import audit as audit_module
from scripts.dependencies.audit import audit, audit_cached, read_accepted
from tests.http_servers import serve
from tests.pems import pems

__all__ = ["pems"]

pytestmark = pytest.mark.slow

ADVISORY = "PYSEC-2026-1"
VULNERABILITY = {
    "id": ADVISORY,
    "aliases": ["CVE-2026-0001"],
    "summary": "Anything can happen",
    "published": "2026-01-01T00:00:00Z",
    "affected": [
        {
            "package": {"name": "rich", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}],
        }
    ],
}


class OsvHandler(BaseHTTPRequestHandler):
    """Speaks the protocol of OSV: one package is vulnerable."""

    requests: list[str]
    status: int

    def respond(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = body["package"]["name"]
        self.requests.append(name)
        content = json.dumps({"vulns": [VULNERABILITY]} if name == "rich" else {}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


class Service:
    """A running service, and the environment that lets pip-audit ask it."""

    def __init__(self, url: str, handler: Any) -> None:
        self.environ = {
            **os.environ,
            "PIP_AUDIT_VULNERABILITY_SERVICE": "osv",
            "PIP_AUDIT_OSV_URL": f"{url}/v1/query",
        }
        self.handler = handler


@pytest.fixture
def service() -> Iterator[Service]:
    handler = type("Handler", (OsvHandler,), {"requests": [], "status": 200})
    with serve(handler, ("POST",)) as url:
        yield Service(url, handler)


def write_pins(folder: Path, *pins: str) -> Path:
    file = folder / "constraints.txt"
    file.write_text("".join(f"{pin}\n" for pin in pins))
    return file


def test_known_vulnerability_is_reported(service: Service, tmp_path: Path) -> None:
    result = audit(write_pins(tmp_path, "rich==15.0.0", "typer==0.29.2"), {}, service.environ)
    assert result.vulnerabilities == (f"  rich 15.0.0: {ADVISORY}, CVE-2026-0001; fixed versions: 99",)
    assert (result.checked, result.warnings) == (2, ())
    assert ADVISORY in result.format()


def test_accepted_vulnerability_is_not_reported(service: Service, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.kdeclare.accepted-vulnerabilities]\n{ADVISORY} = "we do not call it"\n'
    )
    accepted = read_accepted(tmp_path / "pyproject.toml")
    result = audit(write_pins(tmp_path, "rich==15.0.0"), accepted, service.environ)
    assert result.vulnerabilities == ()


def test_unreachable_service_is_a_warning(tmp_path: Path) -> None:
    environ = {**os.environ, "PIP_AUDIT_VULNERABILITY_SERVICE": "osv"}
    environ["PIP_AUDIT_OSV_URL"] = "http://127.0.0.1:1/v1/query"
    result = audit(write_pins(tmp_path, "rich==15.0.0"), {}, environ)
    assert (result.checked, result.vulnerabilities) == (0, ())
    assert result.format().startswith(
        "warning: no package was audited, because the vulnerability service does not respond: "
    )


def test_service_with_untrusted_certificate_is_a_warning(pems: Path, tmp_path: Path) -> None:
    """A network whose proxy replaces certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pems / "cert", pems / "key")
    with serve(BaseHTTPRequestHandler, tls=context) as url:
        result = audit(write_pins(tmp_path, "rich==15.0.0"), {}, Service(url, None).environ)
    assert "certificate verify failed" in result.format()


def test_service_with_errors_is_a_warning(service: Service, tmp_path: Path) -> None:
    service.handler.status = 503
    result = audit(write_pins(tmp_path, "rich==15.0.0"), {}, service.environ)
    assert (result.checked, len(result.warnings)) == (0, 1)


@pytest.mark.parametrize("pin", ["rich>>15", "rich>=15"])
def test_unusable_pin_is_an_error(service: Service, tmp_path: Path, pin: str) -> None:
    with pytest.raises(RuntimeError, match="pip-audit failed"):
        audit(write_pins(tmp_path, pin), {}, service.environ)


def test_package_without_data_is_a_warning() -> None:
    """A package registry without data about vulnerabilities."""
    reason = "Dependency not found on PyPI and could not be audited: rich (15.0.0)"
    result = audit_module._read_result([{"name": "rich", "skip_reason": reason}])
    assert result.format() == f"warning: 1 of 1 packages were not audited, for example: {reason}"


def test_result_is_used_again_until_it_is_old(service: Service, tmp_path: Path) -> None:
    cache = tmp_path / "cache.json"
    pins = write_pins(tmp_path, "typer==0.29.2")

    def run(now: float, environ: Mapping[str, str] = service.environ) -> int:
        result = audit_cached(pins, {}, environ, cache, now)
        assert result.checked == 1
        return len(service.handler.requests)

    assert [run(0), run(3600), run(24 * 3600 - 1)] == [1, 1, 1]
    assert run(24 * 3600) == 2
    write_pins(tmp_path, "click==8.5.1")
    assert run(24 * 3600) == 3


def test_warning_is_used_again_for_an_hour(service: Service, tmp_path: Path) -> None:
    cache, pins = tmp_path / "cache.json", write_pins(tmp_path, "typer==0.29.2")
    service.handler.status = 503
    first = audit_cached(pins, {}, service.environ, cache, 0)
    assert first.warnings
    service.handler.status = 200
    assert audit_cached(pins, {}, service.environ, cache, 3599) == first
    assert audit_cached(pins, {}, service.environ, cache, 3600).checked == 1


def test_vulnerability_is_never_cached(service: Service, tmp_path: Path) -> None:
    cache, pins = tmp_path / "cache.json", write_pins(tmp_path, "rich==15.0.0")
    assert audit_cached(pins, {}, service.environ, cache, 0).vulnerabilities
    assert not cache.exists()


@pytest.mark.parametrize(("pin", "code"), [("rich==15.0.0", 1), ("typer==0.29.2", 0), ("rich>>15", 1)])
def test_exit_code_says_whether_the_build_fails(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin: str, code: int
) -> None:
    monkeypatch.setattr(audit_module, "CONSTRAINTS", write_pins(tmp_path, pin))
    monkeypatch.setattr(audit_module, "CACHE", tmp_path / "cache.json")
    for name in ("PIP_AUDIT_VULNERABILITY_SERVICE", "PIP_AUDIT_OSV_URL"):
        monkeypatch.setenv(name, service.environ[name])
    assert audit_module.main() == code
