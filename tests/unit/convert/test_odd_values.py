"""Wherever a file has a value of another type, a conversion reports a gap or an error, and never crashes."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from kdeclare.app.authoring.convert import convert
from kdeclare.convert.formats import FORMATS
from kdeclare.core.diagnostics import KdeclareError

SOURCES = Path(__file__).parent
ODD_VALUES: tuple[Any, ...] = (None, "", "x", 7, True, [], ["x"], [[1]], {}, {"x": 1}, {"a": {"b": ["c"]}})
STEP = 23
"""Every so many variants are tried; 1 takes minutes."""


def list_variants(value: Any) -> Iterator[Any]:
    """Yield the value with each part of it replaced by each odd value."""
    yield from ODD_VALUES
    if isinstance(value, dict):
        for key, item in value.items():
            yield from ({**value, key: variant} for variant in list_variants(item))
            yield {other: kept for other, kept in value.items() if other != key}
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], variant, *value[index + 1 :]] for variant in list_variants(item))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source_format", "source"),
    [
        (source_format, file.name)
        for source_format in FORMATS
        for file in sorted((SOURCES / source_format).glob("source*"))
    ],
)
def test_odd_value_is_no_internal_error(source_format: str, source: str, tmp_path: Path) -> None:
    documents = yaml.safe_load_all((SOURCES / source_format / source).read_text())
    variants = [variant for document in documents for variant in list_variants(document)][::STEP]
    assert len(variants) > 3
    file = tmp_path / "it.yaml"
    for variant in variants:
        file.write_text(yaml.safe_dump(variant, default_flow_style=None))
        with suppress(KdeclareError):
            convert(source_format, [file])
