"""Read and write plans as JSON: the document, its id, and the file that apply accepts.

The id is a hash of the plan's content. A file with the id of a reviewed plan therefore contains exactly that
plan.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from kdeclare.core.clock import format_second
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, dump_json, parse_json
from kdeclare.core.plans.plan import FORMAT_VERSION, Plan
from kdeclare.engine.planning.plan_document import (
    NOT_HASHED,
    build_observation_documents,
    build_plan_document,
    build_plan_sections,
    build_unmanaged_document,
    compute_document_id,
    compute_plan_id,
)
from kdeclare.engine.planning.plan_values import MIGRATIONS, bind_plan, migrate_plan
from kdeclare.engine.signatures.signature import (
    Signature,
    SignedContent,
    SignMessage,
    parse_signature,
    sign_plan_text,
)
from kdeclare.engine.state.durable_files import find_mode
from kdeclare.version import VERSION

if TYPE_CHECKING:
    from kdeclare.engine.planning.planfile_schema import PlanDocument

__all__ = [
    "PlanFile",
    "build_plan_document",
    "compute_plan_id",
    "find_written_kinds",
    "is_plan_file",
    "load_plan",
    "parse_plan",
    "parse_plan_file",
    "render_plan_file",
    "require_known_parts",
    "verify_plan",
    "write_plan",
]

CheckSignature = Callable[[SignedContent, str], object]
"""A function that raises KdeclareError if a plan must not be used because of its signature.

The function receives the signed content and the name of the file, before the rest of the plan is read.
"""

_MANIFEST = re.compile(r"^apiVersion\s*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan that was read from a file, with the metadata of the file.

    plan_id: the id in the file, which was verified. This id can differ from ``compute_plan_id(plan)`` if a
    different version of kdeclare made the plan, so callers must record this id.
    format_version: the version in the file. ``plan`` itself is always converted to the current format.
    signature: the signature, which is not verified yet; None if the plan is not signed.
    """

    plan: Plan
    plan_id: str
    created_at: str | None
    kdeclare_version: str
    format_version: str = FORMAT_VERSION
    signature: Signature | None = None

    @property
    def signed_content(self) -> SignedContent:
        """The data that the signature covers."""
        return SignedContent(self.plan_id, self.created_at, self.signature)

    @property
    def is_outdated(self) -> bool:
        """Whether the plan has an earlier format with different rules. Such a plan must not be applied."""
        return self.format_version != FORMAT_VERSION


def render_plan_file(
    plan: Plan, created_at: datetime | None = None, kdeclare_version: str = VERSION
) -> tuple[str, str]:
    """Return the text of a plan file, and the plan's id.

    The file has one line per change and per operation, so that two files can be diffed. Each operation is
    encoded only once, for both the text and the id.
    """
    encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode
    text_by_key: dict[str, str] = {}
    items_by_key: dict[str, list[str]] = {}
    for key, value in build_plan_sections(plan, kdeclare_version).items():
        # Convert one operation at a time. The documents of thousands of operations would double the memory of
        # a run.
        items = [encode(item) for item in value] if isinstance(value, Iterator | list) else []
        if items:
            items_by_key[key] = items
            text_by_key[key] = "[\n  " + ",\n  ".join(items) + "\n]"
        else:
            text_by_key[key] = "[]" if isinstance(value, Iterator) else encode(value)
    identity = _hash_canonical(text_by_key, items_by_key)
    header = {
        "format_version": text_by_key.pop("format_version"),
        "plan_id": encode(identity),
        "created_at": encode(format_second(created_at) if created_at else None),
    }
    if plan.observations:  # at the end, and not part of the id
        documents = map(encode, build_observation_documents(plan))
        text_by_key["observations"] = "[\n  " + ",\n  ".join(documents) + "\n]"
    if plan.unmanaged is not None:
        text_by_key["unmanaged"] = encode(build_unmanaged_document(plan.unmanaged))
    lines = ",\n".join(f'"{key}": {value}' for key, value in (header | text_by_key).items())
    return f"{{\n{lines}\n}}\n", identity


def _hash_canonical(text_by_key: Mapping[str, str], items_by_key: Mapping[str, Sequence[str]]) -> str:
    """Return the hash of a JSON object in canonical form.

    text_by_key: the encoded values, by key. items_by_key: for keys whose values are lists, the encoded items.
    """
    digest = hashlib.sha256()
    for number, key in enumerate(sorted(text_by_key)):
        digest.update(f'{"," if number else "{"}"{key}":'.encode())
        items = items_by_key.get(key)
        if items is None:
            digest.update(text_by_key[key].encode())
        else:
            for index, item in enumerate(items):
                digest.update(("," if index else "[").encode() + item.encode())
            digest.update(b"]")
    digest.update(b"}")
    return digest.hexdigest()


_END_OF_OPERATION = re.compile(r""""resource":"([^"/\\]+)/(?:[^"\\]|\\.)*","verb":"([^"\\]+)"\},?\n""")
"""Matches the last two fields of an operation in a plan file.

The file contains fields in order of their names.
"""


def find_written_kinds(lines: Iterable[str]) -> frozenset[tuple[str, str]] | None:
    """Return the pairs of operation type and resource kind that occur in a plan, without decoding the plan.

    lines: the lines of a file that `render_plan_file` wrote. Return None for any other content.

    Decoding thousands of operations of earlier runs would take more time and memory than the rest of
    planning.
    """
    remaining_lines = iter(lines)
    if [*islice(remaining_lines, 2)] != ["{\n", f'"format_version": "{FORMAT_VERSION}",\n']:
        return None
    operations_line = next((line for line in remaining_lines if line.startswith('"operations": [')), "")
    written_kinds: set[tuple[str, str]] = set()
    if operations_line == '"operations": [],\n':
        return frozenset()
    for line in remaining_lines:
        if line == "],\n":
            return frozenset(written_kinds)
        end = _END_OF_OPERATION.match(line, line.rfind('"resource":'))
        if end is None:
            return None
        written_kinds.add((end[2], end[1]))
    return None


def write_plan(
    plan: Plan,
    path: Path,
    created_at: datetime | None = None,
    kdeclare_version: str = VERSION,
    sign: SignMessage | None = None,
) -> str:
    """Write the plan file atomically, and return the plan's id.

    sign: signs the plan at the time ``created_at``, which is then required.
    Raises KdeclareError (``plan-not-written``) if the file cannot be written, or if it cannot be signed.
    """
    text, identity = render_plan_file(plan, created_at, kdeclare_version)
    if sign is not None and created_at is not None:
        text, _ = sign_plan_text(text, sign, created_at)
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():  # a pipe or device cannot be replaced by renaming
            target.write_text(text, encoding="utf-8")
        else:
            _replace_file(target, text)
    except OSError as problem:
        raise KdeclareError(
            error(
                "plan-not-written",
                "The plan file cannot be written",
                f"{path}: {problem.strerror or problem}.",
                hint="Choose another path with --out, or free up disk space.",
            )
        )
    return identity


def verify_plan(file: PlanFile, name: str) -> None:
    """Refuse a plan whose operations differ from the changes that it shows.

    Plans in earlier formats and plans of providers that are not installed are only checked for values that
    cannot be displayed, because apply refuses them anyway.

    name: the name of the file in messages. Raises KdeclareError (``plan-inconsistent``).
    """
    from kdeclare.engine.planning.plan_integrity import (
        find_inconsistencies,
        find_invalid_operations,
        find_unknown_parts,
    )

    is_only_shown = file.is_outdated or find_unknown_parts(file.plan)
    find_problems = find_invalid_operations if is_only_shown else find_inconsistencies
    problem = next(find_problems(file.plan), None)
    if problem is not None:
        raise _build_refusal(
            "plan-inconsistent",
            f"shows changes that differ from its operations: {problem}",
            name,
            "The file may have been edited, or made by another version of kdeclare.",
        )


def require_known_parts(plan: Plan) -> None:
    """Refuse a plan that contains unknown operation types or kinds.

    Raises KdeclareError (``unknown-provider``).
    """
    from kdeclare.engine.planning.plan_integrity import find_unknown_parts

    unknown = find_unknown_parts(plan)
    if unknown:
        raise KdeclareError(
            error(
                "unknown-provider",
                "The plan needs a provider that is not installed",
                f"kdeclare {VERSION} does not know {', '.join(unknown)}. Nothing was applied.",
                hint="Install the provider or the kdeclare version that made the plan, or make a new plan.",
            )
        )


def parse_plan(text: str, name: str) -> Plan:
    """Return the plan in ``text``. Raises the same errors as `parse_plan_file`.

    name: the name of the file in messages.
    """
    return parse_plan_file(text, name).plan


def load_plan(path: Path, check_signature: CheckSignature | None = None) -> PlanFile:
    """Read the plan file at ``path``, and verify that its operations make the changes that it shows.

    check_signature: called with the signature and the name of the file before any other part is read,
        to refuse the plan by raising KdeclareError; None accepts all plans.
    Raises KdeclareError if the file cannot be read or if the verification fails.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise KdeclareError(
            error(
                "plan-not-read",
                "The plan file cannot be read",
                f"{path}: {problem.strerror or problem}.",
                hint="Check the path and the permissions of the file.",
            )
        )
    except UnicodeDecodeError:
        raise _build_refusal("plan-not-json", "is not UTF-8 text", str(path))
    file = parse_plan_file(text, str(path), check_signature)
    verify_plan(file, str(path))
    return file


def parse_plan_file(text: str, name: str, check_signature: CheckSignature | None = None) -> PlanFile:
    """Return the plan in ``text``, with its id.

    check_signature: see `CheckSignature`; None accepts all plans.
    Raises KdeclareError: ``plan-not-json``, ``not-a-plan``, ``plan-format-version``, ``plan-tampered`` (the
    id does not match), ``signature-invalid`` (the signature is malformed), the errors of
    ``check_signature``, or ``plan-malformed`` (the id matches, but the content is invalid).
    """
    try:
        document_json = parse_json(text)
    except (ValueError, RecursionError) as problem:
        if _MANIFEST.search(text):
            raise _build_yaml_error(name)
        raise _build_refusal("plan-not-json", f"is not JSON ({problem})", name, "The file may be truncated.")
    if (
        not isinstance(document_json, dict)
        or "format_version" not in document_json
        or "plan_id" not in document_json
    ):
        raise _build_refusal("not-a-plan", "is not a kdeclare plan", name)
    version = document_json["format_version"]
    if not isinstance(version, str) or version not in (*MIGRATIONS, FORMAT_VERSION):
        made_by = document_json.get("kdeclare_version")
        version_note = f" (made by kdeclare {made_by})" if isinstance(made_by, str) else ""
        raise _build_refusal(
            "plan-format-version",
            f"has plan format {version!r}{version_note}, but kdeclare {VERSION} reads {FORMAT_VERSION!r}",
            name,
        )
    if not _has_matching_id(document_json):
        raise _build_refusal(
            "plan-tampered",
            "is not what kdeclare wrote: its content does not match its plan_id",
            name,
            "To change a plan, change the manifests instead of the file.",
        )
    signature = _parse_signature(document_json, name)
    if check_signature is not None:
        plan_id = str(document_json["plan_id"])
        check_signature(SignedContent(plan_id, document_json.get("created_at"), signature), name)
    document = _validate_document(_migrate_document(document_json, name), name)
    plan = bind_plan(document)
    for change, change_document in zip(plan.changes, document["changes"], strict=True):
        if change_document["risks"] != [risk.value for risk in change.risks]:
            raise _build_malformed_error(
                f"the risks of {change.id} do not match those of its fields", document_json, name
            )
    known_resources = {"", *(str(change.id) for change in plan.changes)}
    for observation in plan.observations:  # not covered by the id
        if observation.resource not in known_resources:
            reason = f"an observation is about {observation.resource}, which the plan does not change"
            raise _build_malformed_error(reason, document_json, name)
    return PlanFile(
        plan,
        document["plan_id"],
        document["created_at"],
        document["kdeclare_version"],
        version,
        signature,
    )


_MANIFEST_SUFFIXES = frozenset({".yaml", ".yml"})


def is_plan_file(path: Path) -> bool:
    """Whether ``path`` looks like a plan. This does not mean that the plan is valid.

    An empty file counts as a truncated plan, unless it has the file name of a manifest.
    """
    try:
        with path.open("rb") as file:
            if not path.is_file():
                return False
            beginning = file.read(64)
            if not beginning:
                return path.suffix not in _MANIFEST_SUFFIXES
            if not beginning.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
                return False
            file.seek(0)
            content = file.read()
    except OSError:
        return False
    return b'"format_version"' in content or b'"plan_id"' in content


def _has_matching_id(raw: JsonObject) -> bool:
    try:
        # First hash the document as it is, because kdeclare writes sorted keys and sorting all levels is
        # slow.
        sorted_json = dump_json({key: raw[key] for key in sorted(raw.keys() - NOT_HASHED)})
        if isinstance(sorted_json, bytes) and hashlib.sha256(sorted_json).hexdigest() == raw["plan_id"]:
            return True
        return compute_document_id(raw) == raw["plan_id"]
    except (UnicodeEncodeError, RecursionError):  # half a surrogate pair, which kdeclare never writes
        return False


def _parse_signature(raw: JsonObject, name: str) -> Signature | None:
    if "signature" not in raw:
        return None
    try:
        return parse_signature(raw["signature"])
    except ValueError as problem:
        raise _build_refusal("signature-invalid", f"has a malformed signature: {problem}", name)


def _migrate_document(raw: JsonObject, name: str) -> JsonObject:
    try:
        return migrate_plan(raw)
    except (KeyError, TypeError, AttributeError) as problem:
        raise _build_malformed_error(f"it lacks a field of its format ({problem})", raw, name)


def _validate_document(raw: JsonObject, name: str) -> "PlanDocument":
    from pydantic import ValidationError

    from kdeclare.engine.planning.planfile_schema import validate_document

    try:
        return validate_document(raw)
    except ValidationError as problem:
        first_error = problem.errors()[0]
        location = ".".join(str(step) for step in first_error["loc"])
        raise _build_malformed_error(f"{location}: {first_error['msg']}", raw, name)
    except ValueError as problem:
        raise _build_malformed_error(str(problem), raw, name)


def _build_malformed_error(reason: str, raw: JsonObject, name: str) -> KdeclareError:
    maker = raw.get("kdeclare_version")
    made_by = f"According to the file, kdeclare {maker} made the plan. This is kdeclare {VERSION}."
    return _build_refusal("plan-malformed", f"is not a valid plan: {reason}", name, made_by)


def _replace_file(target: Path, text: str) -> None:
    temporary_path = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # Other users cannot read the file, because the plan shows the configuration of the cluster.
        descriptor = os.open(
            temporary_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, find_mode(target)
        )
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary_path.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary_path.unlink()
        raise


def _build_yaml_error(name: str) -> KdeclareError:
    return KdeclareError(
        error(
            "plan-not-json",
            "Not a saved plan",
            f"'{name}' is YAML, like a manifest, and not a plan saved by 'kdeclare plan --out FILE'.",
            hint=f"Run this command to see what the manifest would change: kdeclare plan {shlex.quote(name)}",
        )
    )


def _build_refusal(code: str, reason: str, name: str, advice: str = "") -> KdeclareError:
    return KdeclareError(
        error(
            code,
            "Plan file refused",
            f"'{name}' {reason}. {advice}".rstrip(),
            hint="Make a new plan with 'kdeclare plan --out FILE'.",
        )
    )
