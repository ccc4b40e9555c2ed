"""References: their values, the references that values keep, and resolving them again."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.manifests.syntax.substitution import (
    ReferenceContext,
    UnresolvedReference,
    Variable,
    resolve_reference,
    substitute,
)

ENVIRON = {"PASSWORD": "hunter2", "USER": "me"}


def make_scope(folder: Path = Path()) -> ReferenceContext:
    variables = {
        "n": Variable(12, "12"),
        "secret": Variable(
            Referenced("hunter2", "${env.PASSWORD}"), Referenced("hunter2", "${env.PASSWORD}")
        ),
        "kafka": Variable("${a:b:c}", "${a:b:c}"),
    }
    return ReferenceContext(folder, ENVIRON, variables)


@pytest.mark.parametrize(
    ("text", "value", "reference"),
    [
        ("${env.PASSWORD}", "hunter2", "${env.PASSWORD}"),
        ("u=${env.USER} p=${env.PASSWORD};", "me", None),
        ("${var.secret}", "hunter2", "${env.PASSWORD}"),
        ("x${var.secret}", "xhunter2", "x${env.PASSWORD}"),
        ("${var.n}:${env.USER}", "12:me", "12:${env.USER}"),
        ("${var.kafka}-${env.USER}", "${a:b:c}-me", "$${a:b:c}-${env.USER}"),
        ("$${env.USER}${env.USER}", "${env.USER}me", "$${env.USER}${env.USER}"),
        ("${vault:x:y} ${env.USER}", "${vault:x:y} me", "${vault:x:y} ${env.USER}"),
    ],
)
def test_substitute_keeps_reference_of_external_text(text: str, value: str, reference: str | None) -> None:
    found = substitute(text, make_scope(), as_text=True)
    assert isinstance(found, Referenced)
    assert value in found
    assert found.reference == (reference or text)
    assert resolve_reference(found.reference, Path(), ENVIRON) == found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("$", "$"),
        ("a$b{c}", "a$b{c}"),
        ("${a:b:c}", "${a:b:c}"),
        ("$${var.n}", "${var.n}"),
        ("${var.n}", "12"),
        ("${var.n}${var.n}", "1212"),
    ],
)
def test_substitute_returns_plain_text_without_external_reference(text: str, value: str) -> None:
    found = substitute(text, make_scope(), as_text=True)
    assert found == value
    assert not isinstance(found, Referenced)


def test_substitute_single_reference_keeps_type() -> None:
    assert substitute("${var.n}", make_scope(), as_text=False) == 12
    assert substitute("${var.n}0", make_scope(), as_text=False) == "120"


@pytest.mark.parametrize(
    ("written", "value"),
    [(b"x", "x"), (b"x\n", "x"), (b"x\r\n", "x"), (b"x\n\n", "x\n"), (b"", ""), ("é\n".encode(), "é")],
)
def test_file_reference_drops_one_trailing_newline(tmp_path: Path, written: bytes, value: str) -> None:
    (tmp_path / "secret.txt").write_bytes(written)
    assert substitute("${file.secret.txt}", make_scope(tmp_path), as_text=True) == value
    assert resolve_reference("${file.secret.txt}", tmp_path, {}) == value


@pytest.mark.parametrize(
    "text", ["${env.GONE}", "${file.gone}", "${file.binary}", "${var.n}", "${x}", "${env.A"]
)
def test_resolve_reference_rejects_unresolvable_reference(tmp_path: Path, text: str) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\x00")
    with pytest.raises(KdeclareError) as failure:
        resolve_reference(text, tmp_path, {"A": "hunter2"})
    assert "hunter2" not in str(failure.value)


@given(st.text("${}:.varen n\\", max_size=30))
def test_substitute_any_text_gives_text_or_unresolved_reference(text: str) -> None:
    try:
        found = substitute(text, make_scope(), as_text=True)
    except UnresolvedReference:
        return
    assert isinstance(found, str)
