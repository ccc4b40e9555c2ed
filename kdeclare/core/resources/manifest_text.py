"""The YAML of manifests that kdeclare generates, for example in an import."""

import json
import re
from collections.abc import Mapping, Sequence

from kdeclare.core.provider.registry import find_api_version

_PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?|[A-Za-z_][A-Za-z0-9_./-]*")
_RESERVED_WORDS = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n", "~", "inf", "nan"])


def render_manifest(kind: str, name: str, spec: Sequence[str], comments: Sequence[str] = ()) -> str:
    """Return the YAML of a manifest.

    spec: the unindented lines of the spec. comments: the lines of the comment above the manifest.
    """
    return "\n".join(
        [
            *(f"# {line}" for line in comments),
            f"apiVersion: {find_api_version(kind)}",
            f"kind: {kind}",
            "metadata:",
            f"  name: {scalar(name, text=True)}",
            "spec:" if spec else "spec: {}",
            *(f"  {line}" for line in spec),
            "",
        ]
    )


def add_labels(manifest: str, labels: Mapping[str, str]) -> str:
    """Add these labels to a manifest that `render_manifest` created, and return the result."""
    if not labels:
        return manifest
    lines = [
        f"    {scalar(key, text=True)}: {scalar(value, text=True)}" for key, value in sorted(labels.items())
    ]
    before, separator, after = manifest.partition("\nspec:")
    return "\n".join([before, "  labels:", *lines]) + separator + after


def scalar(value: str, *, text: bool = False) -> str:
    """Return a YAML scalar for a string. References in the string are escaped.

    text: whether to quote a string that looks like a number or a Boolean, so that it stays a string.
    """
    is_plain = _PLAIN.fullmatch(value) is not None and (
        value in ("true", "false") or value.lower() not in _RESERVED_WORDS
    )
    is_number_like = value[:1].isdigit() or value[:1] == "-" or value in ("true", "false")
    if is_plain and not (text and is_number_like):
        return value
    return quote_scalar(value.replace("${", "$${"))


def quote_scalar(text: str) -> str:
    """Return a string as a YAML scalar in double quotes. References in the string are not escaped.

    Nonprintable characters are escaped, because they can mislead readers or be invalid in YAML.
    """
    encoded = json.dumps(text, ensure_ascii=False)
    return (
        encoded if encoded.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in encoded)
    )


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def render_flow_map(values: Mapping[int, Sequence[int]]) -> list[str]:
    """Return the YAML lines of a mapping from integers to lists of integers, one line per key."""
    return [f"  {n}: [{', '.join(str(item) for item in items)}]" for n, items in values.items()]
