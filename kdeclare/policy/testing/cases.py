"""Files with PolicyTest manifests as cases that can be run, with all that is wrong with them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel
from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, Place, error, in_order
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.resources.kind import Problem, narrow
from kdeclare.manifests.policies import TOPIC
from kdeclare.manifests.project import Project
from kdeclare.manifests.shapes import Shapes
from kdeclare.manifests.syntax.files import Files, read
from kdeclare.manifests.syntax.nodes import compose, find
from kdeclare.manifests.syntax.reading import Reader
from kdeclare.manifests.syntax.substitution import Scope
from kdeclare.policy.interface import Action
from kdeclare.policy.plain import PlainRequest
from kdeclare.policy.testing.case_spec import (
    CaseSpec,
    PolicyTestSpec,
    RequestSpec,
    StateSpec,
    contradictions,
    labels,
    whole_request,
)
from kdeclare.policy.testing.given import GivenRequest, GivenResource, GivenState

POLICY_TEST = "PolicyTest"

_HINT = f"A file of tests holds manifests of kind {POLICY_TEST}, each with 'spec.cases'."
_Whole = tuple[CaseSpec, RequestSpec]


@dataclass(frozen=True, slots=True)
class Case:
    """One request, and what is expected of the policies that are asked about it.

    test: the name of the manifest that it stands in. policy: the only one that is asked; None is all.
    message: what the message of a verdict must have in it. asked: whether a policy must be asked; None where
    it does not matter.
    """

    test: str
    name: str
    request: GivenRequest | PlainRequest
    expect: VerdictOutcome
    policy: str | None
    message: str | None
    place: Place
    policy_place: Place
    asked: bool | None = None
    kind: str = TOPIC


class PolicyTestKind:
    """Reads PolicyTest manifests; a body is the cases, each with its request over the defaults."""

    name = POLICY_TEST
    spec: type[BaseModel] = PolicyTestSpec

    def parse(self, name: str, spec: BaseModel) -> tuple[tuple[_Whole, ...], tuple[Problem, ...]]:
        """The cases, and what is wrong with them beyond their shape."""
        spec = narrow(spec, PolicyTestSpec)
        found = tuple((case, whole_request(case.request, spec.defaults)) for case in spec.cases)
        wrong = [
            Problem(("cases", number, *problem.path), problem.diagnostic)
            for number, (case, whole) in enumerate(found)
            for problem in _problems(case, whole)
        ]
        return found, tuple(wrong)


def load_cases(
    paths: Iterable[Path], project: Project, environ: Mapping[str, str]
) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    """The cases of files and folders, and all mistakes in them; nothing is raised.

    References are those of the project's manifests.
    """
    diagnostics: list[Diagnostic] = []
    scope = Scope(project.folder, environ, project.environment.variables, limits=project.limits)
    reader = Reader(scope)
    shapes = Shapes({POLICY_TEST: PolicyTestKind()})
    files = Files()
    names = list(files.find(paths))
    cases = [
        case
        for file in names
        for root in _documents(file, diagnostics)
        for case in _cases(root, reader, shapes, diagnostics)
    ]
    diagnostics += files.diagnostics
    if not names and not diagnostics:
        diagnostics.append(_no_cases("There is no YAML file there.", None))
    return tuple(cases), in_order(diagnostics)


def _documents(file: str, diagnostics: list[Diagnostic]) -> Iterator[Node]:
    data = read(file, diagnostics)
    if data is None:
        return
    before = len(diagnostics)
    documents = [root for root in compose(file, data, diagnostics) if not _is_empty(root)]
    if not documents and len(diagnostics) == before:
        empty = error(
            "no-cases", "No cases to run", "The file is empty.", hint=_HINT, place=Place(file, 1, 1)
        )
        diagnostics.append(empty)
    yield from documents


def _cases(root: Node, reader: Reader, shapes: Shapes, diagnostics: list[Diagnostic]) -> Iterator[Case]:
    data = reader.read(root)
    unread, reader.problems = reader.problems, []
    readable, reader.broken = not reader.broken, False
    kind = data.get("kind") if isinstance(data, dict) else None
    if isinstance(kind, str) and kind != POLICY_TEST:
        diagnostics.append(_no_test(kind, root))
        return
    declared, problems = shapes.check(data, root, readable=readable)
    diagnostics += unread + problems
    if declared is None or unread or problems:
        return
    for number, (case, whole) in enumerate(declared.get_body(tuple)):
        yield Case(
            declared.id.name,
            case.name,
            _request(whole),
            VerdictOutcome(case.expect),
            case.policy,
            case.message,
            find(root, ("spec", "cases", number, "name")),
            find(root, ("spec", "cases", number, "policy")),
            True if case.asked is None and case.policy is not None else case.asked,
            whole.kind,
        )


def _problems(case: CaseSpec, whole: RequestSpec) -> Iterator[Problem]:
    for name in ("action", "topic" if whole.kind == TOPIC else "name"):
        if getattr(whole, name) is None:
            detail = f"'request' of the case '{case.name}' needs a field '{name}'."
            hint = "It may stand in 'spec.defaults' as well."
            missing = error("missing-field", "Missing field", detail, hint=hint, subject=name)
            yield Problem(("request",), missing)
    for path, text in contradictions(case, whole):
        detail = f"Case '{case.name}': {text}"
        yield Problem(path, error("contradictory-case", "Case contradicts itself", detail))


def _request(spec: RequestSpec) -> GivenRequest | PlainRequest:
    action = Action(spec.action or "")
    changed = None if spec.changed is None else frozenset(spec.changed)
    if spec.kind != TOPIC:
        given = GivenResource(
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
        return given.make_request()
    return GivenRequest(
        action,
        spec.topic or "",
        spec.principal,
        spec.labels,
        None if action is Action.CREATE else _state("pre", spec.pre),
        None if action is Action.DELETE else _state("post", spec.post),
        changed,
        spec.racks,
        spec.records,
        {labels(text): count for text, count in spec.partitionsOf.items()},
        spec.labelsBefore,
    )


def _state(name: str, spec: StateSpec | None) -> GivenState:
    if spec is None:
        return GivenState(name)
    replicas = {number: tuple(brokers) for number, brokers in sorted(spec.assignments.items())}
    sizes = [len(brokers) for brokers in replicas.values()]
    return GivenState(
        name,
        partitions=len(replicas) or None if spec.partitions is None else spec.partitions,
        factor=min(sizes) if sizes else spec.replicationFactor,
        replicas=replicas,
        overrides={key: value for key, value in spec.configs.items() if value is not None},
        states_factor=spec.replicationFactor is not None,
    )


def _is_empty(root: Node) -> bool:
    return isinstance(root, ScalarNode) and not root.value and not root.style and root.tag is None


def _no_cases(detail: str, place: Place | None) -> Diagnostic:
    return error("no-cases", "No cases to run", detail, hint=_HINT, place=place)


def _no_test(kind: str, root: Node) -> Diagnostic:
    detail = f"This is of kind {kind}, and no test of a policy."
    return error("unknown-kind", "Not a test", detail, hint=_HINT, place=find(root, ("kind",)), subject=kind)
