"""The storages of a soak's state, and readers of what is stored, independent of kdeclare."""

import json
import re
import subprocess
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from tests.git_remotes import SETUP_ENVIRON, create_remote
from tests.object_servers import create_bucket, run_s3_server

STORES = ("local", "git", "kafka", "s3")
PROJECT, ENVIRONMENT = "soak", "lab"
LEASE_S = 6
_FOLDER = f"{PROJECT}/{ENVIRONMENT}/"
_STATE_TOPIC = "soak-state"
_BUCKET = "states"
Objects = dict[str, bytes]


@dataclass(frozen=True)
class StoredState:
    """What is stored. leftovers: files that only a command that is running may have."""

    state: dict[str, Any] | None
    journals: dict[str, list[dict[str, Any]]]
    leftovers: list[str]


@dataclass(frozen=True)
class Store:
    """A storage. location: for ``--state``. environ: what kdeclare needs to reach it."""

    kind: str
    location: str
    read: Callable[[], StoredState]
    environ: dict[str, str]


@contextmanager
def open_soak_store(kind: str, folder: Path, bootstrap: str) -> Iterator[Store]:
    """Prepare a storage of this kind."""
    if kind == "local":
        state = folder / "state"
        yield Store(kind, str(state), lambda: _read_local(state / PROJECT / ENVIRONMENT), {})
    elif kind == "git":
        remote = create_remote(folder / "state.git")
        location = f"git+file://{remote}?branch=kdeclare-state&lease={LEASE_S}"
        yield Store(kind, location, lambda: _parse_objects(_read_git(remote)), {})
    elif kind == "kafka":
        location = f"kafka://{_STATE_TOPIC}?lease={LEASE_S}"
        yield Store(kind, location, lambda: _parse_objects(_read_topic(bootstrap)), {})
    else:
        with run_s3_server() as url:
            create_bucket(url, _BUCKET)
            location = f"s3://{_BUCKET}/soak?region=us-east-1&endpoint={url}&lease={LEASE_S}"
            keys = {"AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST", "AWS_SECRET_ACCESS_KEY": "secret"}
            yield Store(kind, location, lambda: _parse_objects(_read_bucket(url)), keys)


def _read_local(folder: Path) -> StoredState:
    file = folder / "state.json"
    journals = {
        path.parent.name: [json.loads(line)["entry"] for line in path.read_text().splitlines()]
        for path in sorted(folder.glob("runs/*/journal.jsonl"))
    }
    leftovers = [str(path) for path in folder.rglob(".*")]
    return StoredState(json.loads(file.read_bytes()) if file.exists() else None, journals, leftovers)


def _read_git(remote: Path) -> Objects:
    def run(*arguments: str) -> bytes:
        command = ["git", "-C", str(remote), *arguments]
        return subprocess.run(command, env=SETUP_ENVIRON, capture_output=True, check=True).stdout

    if b"kdeclare-state" not in run("branch"):
        return {}
    tip = run("rev-parse", "kdeclare-state").decode().strip()
    names = run("ls-tree", "-r", "-z", "--name-only", tip).decode().split("\0")
    return {
        name.removeprefix(_FOLDER): run("cat-file", "blob", f"{tip}:{name}").partition(b"\n")[2]
        for name in names
        if name.startswith(_FOLDER) and name.endswith(".json") and "/plans/" not in name
    }


def _read_topic(bootstrap: str) -> Objects:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", enable_auto_commit=False
    )
    objects: Objects = {}
    try:
        at = TopicPartition(_STATE_TOPIC, 0)
        if _STATE_TOPIC not in consumer.topics():
            return {}
        consumer.assign([at])
        end = consumer.end_offsets([at])[at]
        consumer.seek_to_beginning(at)
        while consumer.position(at) < end:
            for record in consumer.poll(1000).get(at, []):
                key = record.key.decode().removeprefix(_FOLDER)
                if record.value is None:
                    objects.pop(key, None)
                else:
                    objects[key] = record.value
    finally:
        consumer.close()
    return objects


def _read_bucket(url: str) -> Objects:
    def get(path: str) -> bytes:
        authorization = (
            "AWS4-HMAC-SHA256 Credential=AKIATESTTESTTESTTEST/20261128/us-east-1/s3/aws4_request, "
            "SignedHeaders=host, Signature=0"
        )
        request = urllib.request.Request(f"{url}/{_BUCKET}{path}", headers={"Authorization": authorization})
        with urllib.request.urlopen(request, timeout=10) as response:
            return bytes(response.read())

    keys: list[str] = []
    after = ""
    while True:
        page = get(f"?list-type=2&start-after={after}").decode()
        found = re.findall(r"<Key>([^<]+)</Key>", page)
        keys += found
        if not found or "<IsTruncated>true" not in page:
            break
        after = found[-1]
    prefix = f"soak/{_FOLDER}"
    return {
        key.removeprefix(prefix): get(f"/{key}").partition(b"\n")[2]
        for key in keys
        if key.startswith(prefix) and not key.startswith(f"{prefix}plans/")
    }


def _parse_objects(objects: Objects) -> StoredState:
    journals: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for key in sorted(objects):
        if key.startswith("journals/"):
            journals[key.split("/")[1]] += json.loads(objects[key])["batch"]["entries"]
    state = objects.get("state.json")
    return StoredState(json.loads(state) if state is not None else None, dict(journals), [])
