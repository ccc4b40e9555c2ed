"""What is wanted of workers as plain data: no secret value is in it."""

from collections.abc import Mapping

from kdeclare.core.jsontypes import Json
from kdeclare.core.secrets import Secret
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody
from kdeclare.providers.connect.workers.group_json import group_from, group_json
from kdeclare.providers.kafka.config.wishes import Unset, Whole, Wish


def record_of(wish: Wish) -> Json:
    """What of a wish is owned once it has been applied: ``{value}``, or a secret's reference and hash."""
    if isinstance(wish, Secret):
        return wish.as_json()
    return {"value": wish.value if isinstance(wish, Whole) else None}


def body_json(body: WorkerConfigBody) -> dict[str, Json]:
    """All of a declared body."""
    stated: dict[str, Json] = {
        "workers": group_json(body.group),
        "configs": {key: _stated(wish) for key, wish in body.configs.items()},
        "warnBefore": body.warn_before_s,
    }
    return stated | ({"adopt": True} if body.adopt else {})


def body_from(said: Mapping[str, Json]) -> WorkerConfigBody:
    """The body again; secrets without their values."""
    configs = {key: _wish(record) for key, record in said["configs"].items()}
    adopt = said.get("adopt", False)
    return WorkerConfigBody(group_from(said["workers"]), configs, said["warnBefore"], adopt)


def _stated(wish: Wish) -> Json:
    return wish.stated if isinstance(wish, Secret) else record_of(wish)


def _wish(record: Mapping[str, Json]) -> Wish:
    if "secret" in record:
        return Secret("", record["reference"], record["secret"])
    return Unset() if record["value"] is None else Whole(record["value"])
