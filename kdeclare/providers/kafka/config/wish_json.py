"""Wishes as plain data, to be sent to where they are compared: no secret value is in it."""

from collections.abc import Mapping
from dataclasses import replace

from kdeclare.core.jsontypes import Json
from kdeclare.core.secrets import Secret
from kdeclare.providers.kafka.config.catalog import Catalog
from kdeclare.providers.kafka.config.wishes import Parts, Unset, Whole, Wish, as_secret, may_be_secret

_UNSET = Unset()


def wishes_json(wishes: Mapping[str, Wish], known: Catalog) -> dict[str, Json]:
    """A text, the elements of a list, parts ``{append, subtract}``, a secret's hash, or null for unset.

    Of a key that is unknown, what the cluster may hold secret is a hash, too. Parts never are: Kafka takes
    them for lists that it knows, and shows those. A hash is that of the state where it is of the same value,
    and empty where wishes were not sealed.
    """
    return {key: _encoded(key, wish, known) for key, wish in wishes.items()}


def wishes_from(stated: Mapping[str, Json]) -> dict[str, Wish]:
    """The wishes again; secrets without their values."""
    return {key: _decoded(value) for key, value in stated.items()}


def _encoded(key: str, wish: Wish, known: Catalog) -> Json:
    if isinstance(wish, Whole) and may_be_secret(key, wish, known):
        wish = replace(wish.hidden or as_secret(wish, doubtful=True), doubtful=True)
    if isinstance(wish, Unset):
        return None
    if isinstance(wish, Parts):
        return {"append": list(wish.append), "subtract": list(wish.subtract)}
    if isinstance(wish, Secret):
        return wish.stated | ({"doubtful": True} if wish.doubtful else {})
    if isinstance(wish.value, tuple):
        return list(wish.value)
    return str(wish.value)


def _decoded(stated: Json) -> Wish:
    if stated is None:
        return _UNSET
    if isinstance(stated, str):
        return Whole(stated)
    if isinstance(stated, list):
        return Whole(tuple(stated))
    if "secret" in stated:
        return Secret("", stated["reference"], stated["secret"], doubtful=stated.get("doubtful", False))
    return Parts(tuple(stated["append"]), tuple(stated["subtract"]))
