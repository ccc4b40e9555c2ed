"""The products that the in-memory registry can imitate, and the differences between them."""

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, Mode


@dataclass(frozen=True, slots=True)
class Behavior:
    """The behavior of a registry in cases in which products differ.

    product: the name of the product that behaves in this way.
    level: the global compatibility level of a new registry.
    compares_text: whether two schemas are equal only if their texts are equal. Otherwise, white space, the
        order of keys, and Protobuf comments do not matter.
    distinguishes_own_levels: whether the registry reports that a subject has no level of its own. Otherwise,
        the registry reports NONE for such a subject.
    stores_level_none: whether a subject can have the level NONE. Otherwise, setting NONE removes the level of
        the subject.
    deletes_level_with_subject: whether the soft deletion of a subject also removes its level.
    reports_missing_versions: whether a compatibility check fails for a subject without versions. Otherwise,
        the registry reports that the schema is compatible.
    explains_checks: whether a compatibility check gives reasons.
    checks_references: whether a compatibility check resolves references.
    accepts_empty_text: whether an empty text is a valid schema.
    mode: the global mode; None if the registry has no modes.
    lists_schemas: whether one request can read the latest versions of all subjects.
    id: the id that the registry reports; None if the registry reports no id.
    version: the version that the registry reports.
    """

    product: str
    level: CompatibilityLevel = CompatibilityLevel.BACKWARD
    compares_text: bool = False
    distinguishes_own_levels: bool = True
    stores_level_none: bool = True
    deletes_level_with_subject: bool = False
    reports_missing_versions: bool = True
    explains_checks: bool = True
    checks_references: bool = True
    accepts_empty_text: bool = False
    mode: Mode | None = Mode.READWRITE
    lists_schemas: bool = True
    id: str | None = None
    version: str = ""


CONFLUENT = Behavior(
    "confluent", deletes_level_with_subject=True, id="memory/schema-registry", version="memory"
)
KARAPACE = Behavior("karapace")
APICURIO = Behavior(
    "apicurio",
    level=CompatibilityLevel.NONE,
    compares_text=True,
    distinguishes_own_levels=False,
    stores_level_none=False,
    reports_missing_versions=False,
    explains_checks=False,
    checks_references=False,
    accepts_empty_text=True,
    mode=None,
    lists_schemas=False,
)
