"""Load test cases from PolicyTest manifests, and report problems in the files."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel
from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.resources.kind import SpecProblem, narrow
from kdeclare.manifests.document_models import DocumentValidator
from kdeclare.manifests.policies import TOPIC
from kdeclare.manifests.project import Project
from kdeclare.manifests.syntax.files import FileFinder, read_file
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import compose, find_position
from kdeclare.manifests.syntax.substitution import ReferenceContext
from kdeclare.policy.interface import Action
from kdeclare.policy.plain_requests import PlainRequest
from kdeclare.policy.testing.case_requests import CaseRequest, CaseResource, CaseState
from kdeclare.policy.testing.case_spec import (
    CaseSpec,
    PolicyTestSpec,
    RequestSpec,
    StateSpec,
    find_contradictions,
    merge_request,
    parse_labels,
)

POLICY_TEST = "PolicyTest"

_HINT = f"Pass files or folders with manifests of kind {POLICY_TEST}, each with 'spec.cases'."
_MergedCase = tuple[CaseSpec, RequestSpec]


@dataclass(frozen=True, slots=True)
class Case:
    """A test case: one request, and the expected verdict.

    test: the name of the PolicyTest manifest that contains the case.
    policy: the name of the only policy to evaluate; None for all policies.
    message: a string that the message of a verdict must contain, or None.
    asked: whether at least one policy must be evaluated (True), or no policy (False); None for no
        requirement.
    """

    test: str
    name: str
    request: CaseRequest | PlainRequest
    expect: VerdictOutcome
    policy: str | None
    message: str | None
    place: SourcePosition
    policy_place: SourcePosition
    asked: bool | None = None
    kind: str = TOPIC


class PolicyTestKind:
    """Reads PolicyTest manifests.

    The body of a manifest contains its test cases. For each test case, it also contains the request, merged
    with the defaults of the manifest.
    """

    name = POLICY_TEST
    spec: type[BaseModel] = PolicyTestSpec

    def parse(self, name: str, spec: BaseModel) -> tuple[tuple[_MergedCase, ...], tuple[SpecProblem, ...]]:
        """Return the test cases, and the problems that the Pydantic model of the spec does not detect."""
        spec = narrow(spec, PolicyTestSpec)
        merged_cases = tuple((case, merge_request(case.request, spec.defaults)) for case in spec.cases)
        problems = [
            SpecProblem(("cases", number, *problem.path), problem.diagnostic)
            for number, (case, whole) in enumerate(merged_cases)
            for problem in _check_case(case, whole)
        ]
        return merged_cases, tuple(problems)


def load_cases(
    paths: Iterable[Path], project: Project, environ: Mapping[str, str]
) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    """Return the test cases in files and folders, and the diagnostics.

    References are resolved in the same way as in the manifests of the project.
    """
    diagnostics: list[Diagnostic] = []
    context = ReferenceContext(project.folder, environ, project.environment.variables, limits=project.limits)
    reader = NodeReader(context)
    validator = DocumentValidator({POLICY_TEST: PolicyTestKind()})
    files = FileFinder()
    file_names = list(files.find(paths))
    cases = [
        case
        for file in file_names
        for root in _compose_documents(file, diagnostics)
        for case in _build_cases(root, reader, validator, diagnostics)
    ]
    diagnostics += files.diagnostics
    if not file_names and not diagnostics:
        diagnostics.append(_build_no_cases_error("The given paths contain no YAML file.", None))
    return tuple(cases), sort_diagnostics(diagnostics)


def _compose_documents(file: str, diagnostics: list[Diagnostic]) -> Iterator[Node]:
    data = read_file(file, diagnostics)
    if data is None:
        return
    diagnostic_count = len(diagnostics)
    documents = [root for root in compose(file, data, diagnostics) if not _is_empty(root)]
    if not documents and len(diagnostics) == diagnostic_count:
        empty_file_error = error(
            "no-cases",
            "No test cases found",
            "The file is empty.",
            hint=_HINT,
            place=SourcePosition(file, 1, 1),
        )
        diagnostics.append(empty_file_error)
    yield from documents


def _build_cases(
    root: Node, reader: NodeReader, validator: DocumentValidator, diagnostics: list[Diagnostic]
) -> Iterator[Case]:
    data = reader.read(root)
    read_problems, reader.problems = reader.problems, []
    readable, reader.broken = not reader.broken, False
    kind = data.get("kind") if isinstance(data, dict) else None
    if isinstance(kind, str) and kind != POLICY_TEST:
        diagnostics.append(_build_not_a_test_error(kind, root))
        return
    declared, problems = validator.check(data, root, readable=readable)
    diagnostics += read_problems + problems
    if declared is None or read_problems or problems:
        return
    for number, (case, merged) in enumerate(declared.get_body(tuple)):
        yield Case(
            declared.id.name,
            case.name,
            _build_request(merged),
            VerdictOutcome(case.expect),
            case.policy,
            case.message,
            find_position(root, ("spec", "cases", number, "name")),
            find_position(root, ("spec", "cases", number, "policy")),
            True if case.asked is None and case.policy is not None else case.asked,
            merged.kind,
        )


def _check_case(case: CaseSpec, merged: RequestSpec) -> Iterator[SpecProblem]:
    for name in ("action", "topic" if merged.kind == TOPIC else "name"):
        if getattr(merged, name) is None:
            detail = f"'request' of test case '{case.name}' needs a field '{name}'."
            hint = f"Add '{name}' to the request or to 'spec.defaults'."
            missing_field_error = error("missing-field", "Missing field", detail, hint=hint, subject=name)
            yield SpecProblem(("request",), missing_field_error)
    for path, text in find_contradictions(case, merged):
        detail = f"Test case '{case.name}': {text}"
        yield SpecProblem(path, error("contradictory-case", "Contradictory test case", detail))


def _build_request(spec: RequestSpec) -> CaseRequest | PlainRequest:
    action = Action(spec.action or "")
    changed = None if spec.changed is None else frozenset(spec.changed)
    if spec.kind != TOPIC:
        case_resource = CaseResource(
            spec.kind,
            action,
            spec.name or "",
            spec.principal,
            spec.labels,
            spec.labelsBefore,
            spec.before,
            spec.after,
            changed,
        )
        return case_resource.make_request()
    return CaseRequest(
        action,
        spec.topic or "",
        spec.principal,
        spec.labels,
        None if action is Action.CREATE else _build_state("pre", spec.pre),
        None if action is Action.DELETE else _build_state("post", spec.post),
        changed,
        spec.racks,
        spec.records,
        {parse_labels(text): count for text, count in spec.partitionsOf.items()},
        spec.labelsBefore,
        {} if spec.impact is None else spec.impact.model_dump(exclude_unset=True),
    )


def _build_state(name: str, spec: StateSpec | None) -> CaseState:
    if spec is None:
        return CaseState(name)
    replicas = {number: tuple(brokers) for number, brokers in sorted(spec.assignments.items())}
    sizes = [len(brokers) for brokers in replicas.values()]
    return CaseState(
        name,
        partitions=len(replicas) or None if spec.partitions is None else spec.partitions,
        factor=min(sizes) if sizes else spec.replicationFactor,
        replicas=replicas,
        overrides={key: value for key, value in spec.configs.items() if value is not None},
        states_factor=spec.replicationFactor is not None,
    )


def _is_empty(root: Node) -> bool:
    return isinstance(root, ScalarNode) and not root.value and not root.style and root.tag is None


def _build_no_cases_error(detail: str, place: SourcePosition | None) -> Diagnostic:
    return error("no-cases", "No test cases found", detail, hint=_HINT, place=place)


def _build_not_a_test_error(kind: str, root: Node) -> Diagnostic:
    detail = f"This document is of kind {kind}, which is not a policy test."
    return error(
        "unknown-kind",
        "Not a policy test",
        detail,
        hint=_HINT,
        place=find_position(root, ("kind",)),
        subject=kind,
    )
