"""Kind `Defaults` as editors are told of it: the fields that a kind's own spec has, below `defaults`."""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel, create_model

from kdeclare.core.kind import Kind
from kdeclare.manifests.defaults import DEFAULTS, DefaultsKind, DefaultsSpec


class DefaultsShape(DefaultsKind):
    """Reads as `DefaultsKind`; its spec says more about the fields, and is too strict for them in part."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__(kinds)
        variants: Any = reduce(or_, (_variant(kind) for kind in kinds.values()))
        self.spec = create_model(
            f"{DEFAULTS}Spec", __base__=RootModel[Annotated[variants, Field(discriminator="kind")]]
        )


def _variant(kind: Kind) -> type[BaseModel]:
    """Fields that have to be there in a manifest need not be in defaults, so they are left open."""
    needs_some = any(field.is_required() for field in kind.spec.model_fields.values())
    only: Any = Literal[kind.name]
    fields: Any = dict[str, Any] if needs_some else kind.spec
    return create_model(
        f"{DEFAULTS}Of{kind.name}", __base__=DefaultsSpec, kind=(only, ...), defaults=(fields, ...)
    )
