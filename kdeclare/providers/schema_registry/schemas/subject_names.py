"""Naming strategies: how serializers derive the name of a subject from a topic and a schema."""

from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import NAMED, AvroSchema
from kdeclare.providers.schema_registry.schemas.comparison import ParsedSchema
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema import JsonSchema
from kdeclare.providers.schema_registry.schemas.json_text import as_mapping


class NamingStrategy(StrEnum):
    """The strategies that serializers support (``value.subject.name.strategy``)."""

    TOPIC = "TopicNameStrategy"
    RECORD = "RecordNameStrategy"
    TOPIC_RECORD = "TopicRecordNameStrategy"


class RecordPart(StrEnum):
    """The part of a Kafka record that a schema describes."""

    KEY = "key"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class TopicPart:
    """The keys or the values of a topic's records.

    part: None if the naming strategy does not distinguish keys from values.
    """

    topic: str
    part: RecordPart | None


def build_subject(
    strategy: NamingStrategy, topic: str, part: RecordPart, record_name: str | None = None
) -> str | None:
    """Return the subject that serializers use.

    Return None if the strategy needs ``record_name`` and it is None.
    """
    if strategy is NamingStrategy.TOPIC:
        return f"{topic}-{part}"
    if record_name is None:
        return None
    return record_name if strategy is NamingStrategy.RECORD else f"{topic}-{record_name}"


def parse_subject(
    subject: str, strategy: NamingStrategy = NamingStrategy.TOPIC, record_name: str | None = None
) -> TopicPart | None:
    """Return the topic that a subject belongs to; None if the subject does not follow the strategy.

    record_name: the full name of the schema's record, which only ``TopicRecordNameStrategy`` needs.
    """
    if strategy is NamingStrategy.RECORD:
        return None  # the subject is the same for all topics
    if strategy is NamingStrategy.TOPIC_RECORD:
        topic = subject.removesuffix(f"-{record_name}") if record_name else subject
        return TopicPart(topic, None) if topic not in ("", subject) else None
    topic, separator, part = subject.rpartition("-")
    if not topic or not separator or part not in (RecordPart.KEY, RecordPart.VALUE):
        return None
    return TopicPart(topic, RecordPart(part))


def find_record_name(schema: ParsedSchema) -> str | None:
    """Return the schema name that naming strategies use; None if the schema has no name.

    It is the full name of the Avro type or of the first Protobuf message, or the title of the JSON Schema.
    """
    if isinstance(schema, AvroSchema):
        root = as_mapping(schema.root)
        return str(root["name"]) if root.get("type") in NAMED else None
    if isinstance(schema, JsonSchema):
        title: JsonValue = as_mapping(schema.root).get("title")
        return title if isinstance(title, str) and title else None
    return schema.messages[0].name if schema.messages else None
