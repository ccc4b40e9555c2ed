"""The definition of the provider for schema registries."""

from kdeclare.core.provider.provider import Provider
from kdeclare.providers.schema_registry.connection import CONNECTION
from kdeclare.providers.schema_registry.doctor import examine_registries
from kdeclare.providers.schema_registry.schema.checks import check_declared_schemas
from kdeclare.providers.schema_registry.schema.deletion import DELETE, PURGE
from kdeclare.providers.schema_registry.schema.fleet import SUBJECTS
from kdeclare.providers.schema_registry.schema.kind import SchemaKind
from kdeclare.providers.schema_registry.schema.operations import LEVEL_TYPE
from kdeclare.providers.schema_registry.schema.plan_section import (
    describe_blocked_schemas,
    describe_schema_changes,
)
from kdeclare.providers.schema_registry.schema.planning import SchemaPlanning
from kdeclare.providers.schema_registry.schema.registration import REGISTER

PROVIDER = Provider(
    "schema_registry",
    kinds=(SchemaKind(),),
    operation_types=(REGISTER, LEVEL_TYPE, DELETE, PURGE),
    builds_on=("kafka",),
    connection=CONNECTION,
    examine=examine_registries,
    collectors=(SUBJECTS,),
    start_plan=SchemaPlanning,
    describe_plan=describe_schema_changes,
    describe_blocked=describe_blocked_schemas,
    check_declared=check_declared_schemas,
)
