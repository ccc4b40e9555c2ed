"""The two tables of one synthetic cluster."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from benchmarks.synthetic.cases import Drawn
from benchmarks.synthetic.templates import BROKERS, PLACEHOLDER, PLACEMENTS, TAKEN_AT, Live, Templates
from kdeclare.fleet.live_state import hash_text
from kdeclare.fleet.tables.row_builder import (
    RowOrigin,
    build_cluster_row,
    build_declared_cluster_row,
    build_live_row,
)
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from kdeclare.providers.kafka.fleet.codec import build_topic_object, dump_system
from kdeclare.providers.kafka.live import Broker, ClusterInfo, ConfigEntry, ConfigSource, Partition, Topic

_VERSION = "4.3"
_INTERNAL = ("__consumer_offsets", "__transaction_state")
_COMPACTED = {"cleanup.policy": ConfigEntry("compact", ConfigSource.TOPIC)}


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster of the fleet."""

    number: int

    @property
    def name(self) -> str:
        """The name of the cluster in a fleet file."""
        return f"cluster-{self.number:04}"

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, in the format of Kafka."""
        return _id(Random(f"cluster {self.number}"))

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the cluster in a fleet file."""
        region = ("eu", "us", "ap")[self.number % 3]
        return {"region": region, "tier": "gold" if self.number % 4 == 0 else "silver"}


def declared_table(place: Place, topics: Sequence[Drawn], made: Templates) -> pa.Table:
    """Return the rows of a cluster and its topics in the table of declared resources."""
    there = [topic for topic in topics if topic.declared is not None]
    at = [made.declared_at[topic.shape, topic.declared] for topic in there if topic.declared]
    names = [_name(topic, made) for topic in there]
    columns = {
        "cluster": _same(place.name, pa.string(), len(there)),
        "name": pa.array(names),
        "source": pa.array([f"manifests/{name.replace('.', '/', 1)}.yaml:1:1" for name in names]),
    }
    own = pa.Table.from_pylist([build_declared_cluster_row(place.name, place.labels)], DECLARED)
    return pa.concat_tables([own, _with(made.declared.take(pa.array(at, pa.int32())), columns)])


def live_table(place: Place, topics: Sequence[Drawn], made: Templates, rng: Random) -> pa.Table:
    """Return the rows of a cluster and its topics, even internal topics, in the table of live objects."""
    there = [topic for topic in topics if topic.live is not None]
    at = [
        made.live_at[topic.shape, topic.live, topic.extra, _placement(topic)] for topic in there if topic.live
    ]
    bodies = [made.bodies[n].replace(PLACEHOLDER, _id(rng)) for n in at]
    columns = {
        "cluster": _same(place.name, pa.string(), len(there)),
        "cluster_id": _same(place.cluster_id, pa.string(), len(there)),
        "name": pa.array([_name(topic, made) for topic in there]),
        "body": pa.array(bodies),
        "fingerprint": pa.array([hash_text(body) for body in bodies]),
        "labels": _same(list(place.labels.items()), LIVE.field("labels").type, len(there)),
    }
    own = pa.Table.from_pylist(_own_rows(place), LIVE)
    return pa.concat_tables([own, _with(made.live.take(pa.array(at, pa.int32())), columns)])


def _own_rows(place: Place) -> list[dict[str, Any]]:
    origin = RowOrigin(TAKEN_AT, place.name, place.cluster_id, place.labels)
    brokers = (Broker(n, f"broker-{n}.{place.name}", 9092, f"rack-{n % 3}") for n in range(1, BROKERS + 1))
    partition = Partition((1, 2, 3))
    topics = (Topic(name, PLACEHOLDER, (partition,) * 50, internal=True) for name in _INTERNAL)
    return [
        build_cluster_row(
            origin, dump_system(ClusterInfo(place.cluster_id, tuple(brokers), version=_VERSION))
        ),
        *(build_live_row(origin, build_topic_object(topic, _COMPACTED, {})) for topic in topics),
    ]


def _placement(topic: Drawn) -> int:
    return topic.number % PLACEMENTS if topic.live is Live.SAME else 0


def _name(topic: Drawn, made: Templates) -> str:
    shape = made.shapes[topic.shape]
    return f"{shape.team}.{shape.purpose}-{topic.number:05}"


def _same(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    return pa.array([value], kind).take(pa.array([0] * count, pa.int32()))


def _with(table: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), values)
    return table


def _id(rng: Random) -> str:
    return base64.urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")
