"""Live resources as the text of manifests."""

import json
import re
from collections.abc import Mapping, Sequence

from kdeclare.core.jsontypes import Json
from kdeclare.core.secrets import SHOWN
from kdeclare.providers.kafka.config.config_diff import ConfigSide, override

_PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?|[A-Za-z_][A-Za-z0-9_./-]*")
_TAKEN = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n", "~", "inf", "nan"])


def manifest(kind: str, name: str, spec: Sequence[str], comments: Sequence[str] = ()) -> str:
    """A manifest with ``comments`` above it; ``spec`` are its lines, not yet indented."""
    return "\n".join(
        [
            *(f"# {line}" for line in comments),
            "apiVersion: kdeclare/v1",
            f"kind: {kind}",
            "metadata:",
            f"  name: {scalar(name, text=True)}",
            "spec:" if spec else "spec: {}",
            *(f"  {line}" for line in spec),
            "",
        ]
    )


def config_lines(side: ConfigSide, keys: Sequence[str]) -> list[str]:
    """``configs:`` with the overrides of ``keys``; a sensitive one becomes a comment."""
    return value_lines({key: value for key in keys if (value := override(side, key)) is not None})


def value_lines(values: Mapping[str, Json]) -> list[str]:
    """``configs:`` with values as plans write them; none at all without any."""
    lines: list[str] = []
    for key, value in values.items():
        if value == SHOWN:
            lines.append(f"  # {key} is set, and Kafka shows it to nobody: ${{env.NAME}} would declare it")
        elif isinstance(value, list):
            lines.append(f"  {key}: [{', '.join(scalar(e) for e in value)}]")
        else:
            lines.append(f"  {key}: {scalar(value)}")
    if not lines:
        return []
    declares = any(not line.lstrip().startswith("#") for line in lines)
    return ["configs:" if declares else "configs: {}", *lines]


def scalar(value: str, *, text: bool = False) -> str:
    """A YAML scalar for a config's text; ``text`` keeps what looks like a number a string."""
    simple = _PLAIN.fullmatch(value) is not None and (
        value in ("true", "false") or value.lower() not in _TAKEN
    )
    number = value[:1].isdigit() or value[:1] == "-" or value in ("true", "false")
    if simple and not (text and number):
        return value
    return quoted(value.replace("${", "$${"))


def quoted(text: str) -> str:
    """A YAML scalar in double quotes; references in it stay references.

    What cannot be seen is written as an escape: it could mislead whoever reads it, or be no YAML.
    """
    found = json.dumps(text, ensure_ascii=False)
    return found if found.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in found)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def flow_map(values: Mapping[int, Sequence[int]]) -> list[str]:
    """Lines of a mapping from partition to replicas."""
    return [f"  {n}: [{', '.join(str(r) for r in replicas)}]" for n, replicas in values.items()]
