"""A plan as JSON, and back: the document, its id, and the file that apply believes.

The id covers everything that a plan says, so a file whose id is right is the plan that was reviewed.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable
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
    build_plan_body,
    build_plan_document,
    compute_document_id,
    compute_plan_id,
)
from kdeclare.engine.planning.plan_values import MIGRATIONS, bind_plan, migrate_plan
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

_MANIFEST = re.compile(r"^apiVersion\s*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan that was read, with what its file says beside it.

    plan_id: as in the file and checked; it can differ from ``plan_id(plan)`` when another
    version of kdeclare made the plan, so it is the one to remember.
    format_version: as in the file; ``plan`` is in the current one in any case.
    """

    plan: Plan
    plan_id: str
    created_at: str | None
    kdeclare_version: str
    format_version: str = FORMAT_VERSION

    @property
    def is_outdated(self) -> bool:
        """Whether an earlier kdeclare made it, by rules that no longer hold: it must not be applied."""
        return self.format_version != FORMAT_VERSION


def render_plan_file(
    plan: Plan, created_at: datetime | None = None, kdeclare_version: str = VERSION
) -> tuple[str, str]:
    """The text of a plan file, and the plan's id.

    One line a change and an operation, so that two files can be compared. Written from canonical
    pieces, so that thousands of operations are encoded once for the text and the id together.
    """
    encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode
    text_by_key, canonical_by_key = {}, {}
    for key, value in build_plan_body(plan, kdeclare_version).items():
        if isinstance(value, list) and value:
            items = [encode(item) for item in value]
            text_by_key[key] = "[\n  " + ",\n  ".join(items) + "\n]"
            canonical_by_key[key] = "[" + ",".join(items) + "]"
        else:
            text_by_key[key] = canonical_by_key[key] = encode(value)
    canonical_text = (
        "{" + ",".join(f'"{key}":{canonical_by_key[key]}' for key in sorted(canonical_by_key)) + "}"
    )
    identity = hashlib.sha256(canonical_text.encode()).hexdigest()
    header = {
        "format_version": text_by_key.pop("format_version"),
        "plan_id": encode(identity),
        "created_at": encode(format_second(created_at) if created_at else None),
    }
    lines = ",\n".join(f'"{key}": {value}' for key, value in (header | text_by_key).items())
    return f"{{\n{lines}\n}}\n", identity


_END_OF_OPERATION = re.compile(r""""resource":"([^"/\\]+)/(?:[^"\\]|\\.)*","verb":"([^"\\]+)"\},?\n""")
"""What a line with an operation ends with, as the fields of one are sorted."""


def find_written_kinds(lines: Iterable[str]) -> frozenset[tuple[str, str]] | None:
    """Find of which types the operations of a plan are, each with the kind of a resource, as fast as can be.

    lines: of what `render_plan_file` has made; None for anything else. They are not decoded: of thousands of
    operations that takes longer, and more memory, than all else that a plan does about earlier runs.
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
    plan: Plan, path: Path, created_at: datetime | None = None, kdeclare_version: str = VERSION
) -> str:
    """Write the plan file, whole or not at all; returns the plan's id.

    Raises KdeclareError (``plan-not-written``) when the file cannot be written.
    """
    text, identity = render_plan_file(plan, created_at, kdeclare_version)
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():  # a pipe or a device has no "beside"
            target.write_text(text, encoding="utf-8")
        else:
            _replace_file(target, text)
    except OSError as problem:
        raise KdeclareError(
            error(
                "plan-not-written",
                "The plan file cannot be written",
                f"{path}: {problem.strerror or problem}.",
                hint="Choose another place with --out, or make room for it.",
            )
        )
    return identity


def verify_plan(file: PlanFile, name: str) -> None:
    """Refuse a plan that shows one thing and does another. ``name`` stands for the file in messages.

    Plans of earlier formats and of providers that are not installed are let through: they can be shown, and
    apply refuses them. Raises KdeclareError (``plan-inconsistent``).
    """
    from kdeclare.engine.planning.plan_integrity import find_inconsistencies, find_unknown_parts

    if file.is_outdated or find_unknown_parts(file.plan):
        return
    problem = next(find_inconsistencies(file.plan), None)
    if problem is not None:
        raise _build_refusal(
            "plan-inconsistent",
            f"shows other changes than it makes: {problem}",
            name,
            "Somebody may have edited it, or another version of kdeclare made it.",
        )


def require_known_parts(plan: Plan) -> None:
    """Refuse to apply what this kdeclare cannot do. Raises KdeclareError (``unknown-provider``)."""
    from kdeclare.engine.planning.plan_integrity import find_unknown_parts

    unknown = find_unknown_parts(plan)
    if unknown:
        raise KdeclareError(
            error(
                "unknown-provider",
                "The plan needs a provider that is not installed",
                f"This kdeclare, {VERSION}, does not know {', '.join(unknown)}. Nothing was applied.",
                hint="Install the provider or the version of kdeclare that made the plan, or plan again.",
            )
        )


def parse_plan(text: str, name: str) -> Plan:
    """The plan in ``text``; ``name`` stands for the file in messages. Raises as ``parse_plan_file``."""
    return parse_plan_file(text, name).plan


def load_plan(path: Path) -> PlanFile:
    """Read and check the plan file at ``path``, and that it does what it shows.

    Raises KdeclareError when it is not to be believed.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise KdeclareError(
            error("plan-not-read", "The plan file cannot be read", f"{path}: {problem.strerror or problem}.")
        )
    except UnicodeDecodeError:
        raise _build_refusal("plan-not-json", "is not UTF-8 text", str(path))
    file = parse_plan_file(text, str(path))
    verify_plan(file, str(path))
    return file


def parse_plan_file(text: str, name: str) -> PlanFile:
    """The plan in ``text``, with its id.

    Raises KdeclareError: ``plan-not-json``, ``not-a-plan``, ``plan-format-version``,
    ``plan-tampered`` (the id does not fit) or ``plan-malformed`` (a wrong shape under a right id).
    """
    try:
        document_json = parse_json(text)
    except (ValueError, RecursionError) as problem:
        if _MANIFEST.search(text):
            raise _build_yaml_error(name)
        raise _build_refusal("plan-not-json", f"is not JSON ({problem})", name, "It may have been cut short.")
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
            f"has plan format {version!r}{version_note}; this kdeclare, {VERSION}, reads {FORMAT_VERSION!r}",
            name,
        )
    if not _has_matching_id(document_json):
        raise _build_refusal(
            "plan-tampered",
            "is not what kdeclare wrote: its content does not fit its plan_id",
            name,
            "Plan files are not edited by hand; change the manifests.",
        )
    document = _validate_document(_migrate_document(document_json, name), name)
    plan = bind_plan(document)
    for change, change_document in zip(plan.changes, document["changes"], strict=True):
        if change_document["risks"] != [risk.value for risk in change.risks]:
            raise _build_malformed_error(
                f"the risks of {change.id} are not those of its fields", document_json, name
            )
    return PlanFile(
        plan,
        document["plan_id"],
        document["created_at"],
        document["kdeclare_version"],
        version,
    )


def is_plan_file(path: Path) -> bool:
    """Whether ``path`` is a file that wants to be a plan, by its content; it can still be refused."""
    try:
        with path.open("rb") as file:
            if not path.is_file() or not file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
                return False
            file.seek(0)
            content = file.read()
    except OSError:
        return False
    return b'"format_version"' in content or b'"plan_id"' in content


def _has_matching_id(raw: JsonObject) -> bool:
    try:
        # All that kdeclare writes is sorted, so that it is canonical as it stands; sorting it takes longer.
        sorted_json = dump_json({key: raw[key] for key in sorted(raw.keys() - NOT_HASHED)})
        if isinstance(sorted_json, bytes) and hashlib.sha256(sorted_json).hexdigest() == raw["plan_id"]:
            return True
        return compute_document_id(raw) == raw["plan_id"]
    except (UnicodeEncodeError, RecursionError):  # half a surrogate pair: nothing that kdeclare writes
        return False


def _migrate_document(raw: JsonObject, name: str) -> JsonObject:
    try:
        return migrate_plan(raw)
    except (KeyError, TypeError, AttributeError) as problem:
        raise _build_malformed_error(f"it lacks what its format has ({problem})", raw, name)


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
    made_by = f"It says that kdeclare {raw.get('kdeclare_version')} made it; this is {VERSION}."
    return _build_refusal("plan-malformed", f"is not a valid plan: {reason}", name, made_by)


def _replace_file(target: Path, text: str) -> None:
    """All of ``text`` or what was there before: a half-written plan must never be found."""
    temporary_path = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # not readable by others: it says what the cluster is configured with
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
            f"'{name}' is YAML, as manifests are, and no plan that 'kdeclare plan --out FILE' has saved.",
            hint=f"To see what a manifest would change: kdeclare plan {shlex.quote(name)}",
        )
    )


def _build_refusal(code: str, reason: str, name: str, advice: str = "") -> KdeclareError:
    return KdeclareError(
        error(
            code,
            "The plan file is refused",
            f"'{name}' {reason}.",
            hint=f"{advice} Make a new plan with 'kdeclare plan --out FILE'.".strip(),
        )
    )
