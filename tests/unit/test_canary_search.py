"""The search for canary secrets finds every form in which a secret can leak."""

import base64
import html
import io
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.canaries import find_canaries, make_canary, search_files

CANARY = make_canary("here")
OTHER = make_canary("elsewhere")


def write_parquet(text: str) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": [text] * 2}), buffer, compression="zstd")
    return buffer.getvalue()


def write_zip(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("file", content)
    return buffer.getvalue()


FORMS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "in JSON": lambda value: json.dumps({"key": value}).encode(),
    "in a URL": lambda value: quote(value).encode(),
    "in HTML": lambda value: html.escape(value).encode(),
    "in base64": lambda value: base64.b64encode(value.encode()),
    "as login": lambda value: base64.b64encode(f"ann:{value}".encode()),
    "as other login": lambda value: base64.urlsafe_b64encode(f"anna:{value}:x".encode()),
    "as a third login": lambda value: base64.b64encode(f"annab:{value}:x".encode()),
    "first half": lambda value: value[: len(value) // 2].encode(),
    "second half": lambda value: value[len(value) // 2 :].encode(),
    "halves exchanged": lambda value: (value[len(value) // 2 :] + value[: len(value) // 2]).encode(),
    "backwards": lambda value: value[::-1].encode(),
    "as hex": lambda value: value.encode().hex().encode(),
    "in an object of git": lambda value: zlib.compress(f"blob 9\0{value}".encode()),
    "in Parquet": write_parquet,
    "in an archive": lambda value: write_zip(value.encode()),
    "in Parquet in an archive": lambda value: write_zip(write_parquet(value)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_is_found(form: Callable[[str], bytes]) -> None:
    assert find_canaries(form(CANARY.value), [CANARY, OTHER]) == {"here"}


def test_files_and_their_names_are_searched_except_inputs(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    inputs = tmp_path / "folder" / "client.properties"
    for path in (inputs, tmp_path / "folder" / "state.json", tmp_path / CANARY.parts[0]):
        path.write_text(f"password={OTHER.value}")
    findings = search_files([tmp_path], [CANARY, OTHER], [inputs])
    assert sorted(findings) == [
        ("elsewhere", str(tmp_path / CANARY.parts[0])),
        ("elsewhere", str(tmp_path / "folder" / "state.json")),
        ("here", f"the name {tmp_path / CANARY.parts[0]}"),
    ]
