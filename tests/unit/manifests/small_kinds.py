"""Minimal kinds, so that the loader's tests do not depend on the checks of real kinds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import error
from kdeclare.core.resources.kind import NAME, Kind, SpecProblem, narrow
from kdeclare.core.resources.raw_text import RawText
from kdeclare.core.secrets.secret_refs import SecretText
from kdeclare.manifests.document_models import Declarable


class Inner(BaseModel):
    """A nested mapping."""

    model_config = ConfigDict(extra="forbid")
    preventDestroy: bool = False  # noqa: N815


class Item(BaseModel):
    """An element of a list of mappings."""

    model_config = ConfigDict(extra="forbid")
    topic: str
    partition: Annotated[int, Field(ge=0)] = 0


class Login(BaseModel):
    """A mapping that contains a secret."""

    model_config = ConfigDict(extra="forbid")
    user: str = ""
    password: SecretText | None = None
    older: list[SecretText] = []


class Spec(BaseModel):
    """A spec with each type of field that real specs have."""

    model_config = ConfigDict(extra="forbid")
    partitions: Annotated[int, Field(ge=1)] | None = None
    ratio: float | None = None
    throttle: int | str | None = None
    assignments: dict[int, list[int]] | None = None
    items: list[Item] = []
    configs: Annotated[dict[str, Any], RawText(may_be_secret=True)] = {}
    mode: Literal["keep", "remove"] = "keep"
    lifecycle: Inner = Inner()
    login: Login | None = None


@dataclass
class SmallKind:
    """Its body is the spec as plain data; it rejects one config key and one name."""

    name: str
    spec: type[BaseModel] = Spec
    exclusive_fields: ClassVar[Mapping[str, frozenset[str]]] = {
        "partitions": frozenset({"assignments"}),
        "assignments": frozenset({"partitions"}),
    }

    def parse(self, name: str, spec: BaseModel) -> tuple[Any, tuple[SpecProblem, ...]]:
        spec = narrow(spec, Spec)
        problems = []
        if name == "illegal":
            problems.append(SpecProblem(NAME, error("illegal-name", "Illegal name", "'illegal' is no name.")))
        if "wrong" in spec.configs:
            detail = "There is no config 'wrong'."
            problems.append(SpecProblem(("configs", "wrong"), error("no-config", "No such config", detail)))
        if spec.partitions is None and spec.assignments is None:
            detail = "Neither partitions nor assignments."
            problems.append(SpecProblem((), error("no-size", "No size", detail)))
        return spec.model_dump(exclude_unset=True), tuple(problems)


class RuleSpec(BaseModel):
    """A text with a syntax of its own."""

    model_config = ConfigDict(extra="forbid")
    rule: str
    labels: Annotated[dict[str, str], RawText()] = {}


@dataclass
class SmallRule:
    """A rule that rejects the word HERE in its texts."""

    name: str
    spec: type[BaseModel] = RuleSpec

    def parse(self, name: str, spec: BaseModel) -> tuple[Any, tuple[SpecProblem, ...]]:
        spec = narrow(spec, RuleSpec)
        wrong = error("bad-rule", "Bad rule", "HERE is wrong.")
        found = (SpecProblem(("rule",), wrong, match.start()) for match in re.finditer("HERE", spec.rule))
        return spec.model_dump(exclude_unset=True), tuple(found)


RULES: Mapping[str, Declarable] = {"Rule": SmallRule("Rule")}

# the loader only parses with a kind
KINDS: Mapping[str, Kind] = {name: cast(Kind, SmallKind(name)) for name in ("Topic", "Broker")}
