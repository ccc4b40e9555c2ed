"""The file formats that kdeclare can convert to manifests, by name."""

import importlib
from collections.abc import Callable, Mapping, Sequence

from kdeclare.convert.source import Findings, SourceFile, read_source

FORMATS = ("strimzi", "terraform", "topicctl", "kafka-gitops", "julieops", "jikkou")
"""The names of the source formats, in the order in which the help text lists them."""

_TEMPLATE_HINTS: Mapping[str, str] = {
    "jikkou": "Render the templates with 'jikkou prepare', and convert the result."
}
_Convert = Callable[[Sequence[SourceFile], Findings], None]


def convert_files(source_format: str, paths: Sequence[str]) -> Findings:
    """Convert files of another tool. Raises KdeclareError if a file is unreadable or not in the format."""
    module = importlib.import_module(f"kdeclare.convert.{source_format.replace('-', '_')}")
    convert: _Convert = module.convert
    hint = _TEMPLATE_HINTS.get(source_format, "")
    findings = Findings()
    convert([read_source(path, template_hint=hint) for path in paths], findings)
    findings.report_unread_fields()
    return findings
