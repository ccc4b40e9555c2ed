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
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonObject, dump_json, parse_json
from kdeclare.core.plans.plan import FORMAT_VERSION, Plan
from kdeclare.engine.planning.plan_document import (
    NOT_HASHED,
    content_hash,
    plan_body,
    plan_document,
    plan_id,
)
from kdeclare.engine.planning.plan_values import STEPS, migrate_plan, plan_of
from kdeclare.engine.state.durable import find_mode
from kdeclare.version import VERSION

if TYPE_CHECKING:
    from kdeclare.engine.planning.planfile_schema import PlanDocument

__all__ = [
    "PlanFile",
    "find_written_kinds",
    "is_plan_file",
    "load_plan",
    "plan_document",
    "plan_file_text",
    "plan_id",
    "read_plan",
    "read_plan_file",
    "refuse_unknown_parts",
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


def plan_file_text(
    plan: Plan, created_at: datetime | None = None, kdeclare_version: str = VERSION
) -> tuple[str, str]:
    """The text of a plan file, and the plan's id.

    One line a change and an operation, so that two files can be compared. Written from canonical
    pieces, so that thousands of operations are encoded once for the text and the id together.
    """
    encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode
    text, canonical = {}, {}
    for key, value in plan_body(plan, kdeclare_version).items():
        if isinstance(value, list) and value:
            items = [encode(item) for item in value]
            text[key] = "[\n  " + ",\n  ".join(items) + "\n]"
            canonical[key] = "[" + ",".join(items) + "]"
        else:
            text[key] = canonical[key] = encode(value)
    whole = "{" + ",".join(f'"{key}":{canonical[key]}' for key in sorted(canonical)) + "}"
    identity = hashlib.sha256(whole.encode()).hexdigest()
    head = {
        "format_version": text.pop("format_version"),
        "plan_id": encode(identity),
        "created_at": encode(format_second(created_at) if created_at else None),
    }
    lines = ",\n".join(f'"{key}": {value}' for key, value in (head | text).items())
    return f"{{\n{lines}\n}}\n", identity


_END_OF_OPERATION = re.compile(r""""resource":"([^"/\\]+)/(?:[^"\\]|\\.)*","verb":"([^"\\]+)"\},?\n""")
"""What a line with an operation ends with, as the fields of one are sorted."""


def find_written_kinds(lines: Iterable[str]) -> frozenset[tuple[str, str]] | None:
    """Find of which types the operations of a plan are, each with the kind of a resource, as fast as can be.

    lines: of what `plan_file_text` has made; None for anything else. They are not decoded: of thousands of
    operations that takes longer, and more memory, than all else that a plan does about earlier runs.
    """
    rest = iter(lines)
    if [*islice(rest, 2)] != ["{\n", f'"format_version": "{FORMAT_VERSION}",\n']:
        return None
    head = next((line for line in rest if line.startswith('"operations": [')), "")
    found: set[tuple[str, str]] = set()
    if head == '"operations": [],\n':
        return frozenset()
    for line in rest:
        if line == "],\n":
            return frozenset(found)
        end = _END_OF_OPERATION.match(line, line.rfind('"resource":'))
        if end is None:
            return None
        found.add((end[2], end[1]))
    return None


def write_plan(
    plan: Plan, path: Path, created_at: datetime | None = None, kdeclare_version: str = VERSION
) -> str:
    """Write the plan file, whole or not at all; returns the plan's id.

    Raises KdeclareError (``plan-not-written``) when the file cannot be written.
    """
    text, identity = plan_file_text(plan, created_at, kdeclare_version)
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():  # a pipe or a device has no "beside"
            target.write_text(text, encoding="utf-8")
        else:
            _replace(target, text)
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
        raise _refused(
            "plan-inconsistent",
            f"shows other changes than it makes: {problem}",
            name,
            "Somebody may have edited it, or another version of kdeclare made it.",
        )


def refuse_unknown_parts(plan: Plan) -> None:
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


def read_plan(text: str, name: str) -> Plan:
    """The plan in ``text``; ``name`` stands for the file in messages. Raises as ``read_plan_file``."""
    return read_plan_file(text, name).plan


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
        raise _refused("plan-not-json", "is not UTF-8 text", str(path))
    file = read_plan_file(text, str(path))
    verify_plan(file, str(path))
    return file


def read_plan_file(text: str, name: str) -> PlanFile:
    """The plan in ``text``, with its id.

    Raises KdeclareError: ``plan-not-json``, ``not-a-plan``, ``plan-format-version``,
    ``plan-tampered`` (the id does not fit) or ``plan-malformed`` (a wrong shape under a right id).
    """
    try:
        raw = parse_json(text)
    except (ValueError, RecursionError) as problem:
        if _MANIFEST.search(text):
            raise _no_plan_but_yaml(name)
        raise _refused("plan-not-json", f"is not JSON ({problem})", name, "It may have been cut short.")
    if not isinstance(raw, dict) or "format_version" not in raw or "plan_id" not in raw:
        raise _refused("not-a-plan", "is not a kdeclare plan", name)
    version = raw["format_version"]
    if not isinstance(version, str) or version not in (*STEPS, FORMAT_VERSION):
        made_by = raw.get("kdeclare_version")
        made = f" (made by kdeclare {made_by})" if isinstance(made_by, str) else ""
        raise _refused(
            "plan-format-version",
            f"has plan format {version!r}{made}; this kdeclare, {VERSION}, reads {FORMAT_VERSION!r}",
            name,
        )
    if not _fits_id(raw):
        raise _refused(
            "plan-tampered",
            "is not what kdeclare wrote: its content does not fit its plan_id",
            name,
            "Plan files are not edited by hand; change the manifests.",
        )
    document = _validated(_migrated(raw, name), name)
    plan = plan_of(document)
    for change, stated in zip(plan.changes, document["changes"], strict=True):
        if stated["risks"] != [risk.value for risk in change.risks]:
            raise _malformed(f"the risks of {change.id} are not those of its fields", raw, name)
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


def _fits_id(raw: JsonObject) -> bool:
    try:
        # All that kdeclare writes is sorted, so that it is canonical as it stands; sorting it takes longer.
        as_it_stands = dump_json({key: raw[key] for key in sorted(raw.keys() - NOT_HASHED)})
        if isinstance(as_it_stands, bytes) and hashlib.sha256(as_it_stands).hexdigest() == raw["plan_id"]:
            return True
        return content_hash(raw) == raw["plan_id"]
    except (UnicodeEncodeError, RecursionError):  # half a surrogate pair: nothing that kdeclare writes
        return False


def _migrated(raw: JsonObject, name: str) -> JsonObject:
    try:
        return migrate_plan(raw)
    except (KeyError, TypeError, AttributeError) as problem:
        raise _malformed(f"it lacks what its format has ({problem})", raw, name)


def _validated(raw: JsonObject, name: str) -> "PlanDocument":
    from pydantic import ValidationError

    from kdeclare.engine.planning.planfile_schema import validated

    try:
        return validated(raw)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise _malformed(f"{where}: {first['msg']}", raw, name)
    except ValueError as problem:
        raise _malformed(str(problem), raw, name)


def _malformed(what: str, raw: JsonObject, name: str) -> KdeclareError:
    made_by = f"It says that kdeclare {raw.get('kdeclare_version')} made it; this is {VERSION}."
    return _refused("plan-malformed", f"is not a valid plan: {what}", name, made_by)


def _replace(target: Path, text: str) -> None:
    """All of ``text`` or what was there before: a half-written plan must never be found."""
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # not readable by others: it says what the cluster is configured with
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, find_mode(target))
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _no_plan_but_yaml(name: str) -> KdeclareError:
    return KdeclareError(
        error(
            "plan-not-json",
            "Not a saved plan",
            f"'{name}' is YAML, as manifests are, and no plan that 'kdeclare plan --out FILE' has saved.",
            hint=f"To see what a manifest would change: kdeclare plan {shlex.quote(name)}",
        )
    )


def _refused(code: str, what: str, name: str, more: str = "") -> KdeclareError:
    return KdeclareError(
        error(
            code,
            "The plan file is refused",
            f"'{name}' {what}.",
            hint=f"{more} Make a new plan with 'kdeclare plan --out FILE'.".strip(),
        )
    )
