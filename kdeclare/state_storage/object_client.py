"""Store objects in S3, Google Cloud Storage or Azure Blob Storage with the obstore library.

Each object starts with a line that is different for each write, for two reasons. In S3, the ETag is a
checksum of the content, so two writes of the same content would have the same version. If the response to a
write is lost and the client repeats the request, the repeated request conflicts with the first one; the line
then shows that the object was written by the same client.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import AzureStore, GCSStore, S3Store

from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.storage.conditional_objects import ObjectConflict, ObjectVersion, StoredObject
from kdeclare.state_storage.first_line import make_first_line, split_first_line
from kdeclare.state_storage.object_settings import SECRET_VARIABLES, ObjectSettings
from kdeclare.state_storage.object_storage_problems import (
    build_client_error,
    build_foreign_object_error,
    build_storage_error,
    build_unsafe_error,
    classify_failure,
)

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, RetryConfig, S3Config

Client = S3Store | GCSStore | AzureStore

MAX_OBJECT_BYTES = 1024 * 1024
"""The maximum size of an object.

A few objects of this size can be sent within the timeout, even over a slow connection.
"""

_ATTEMPTS = 2
"""The maximum number of times that kdeclare sends a write or a deletion.

The client library repeats some requests as well.
"""
_THREADS = 8
_NO_CACHE = {"Cache-Control": "no-store"}  # Google serves public objects from a cache otherwise


def open_client(settings: ObjectSettings, timeout_s: float) -> Client:
    """Create the client of a service. The client reads the credentials from the environment.

    A single request takes at most half of ``timeout_s``. The client does not repeat a request once three
    quarters of ``timeout_s`` have passed.
    """
    for name in SECRET_VARIABLES:
        SCRUBBER.register(os.environ.get(name, ""))
    client_options: ClientConfig = {
        "allow_http": settings.is_plain_http,
        "connect_timeout": timedelta(seconds=min(5, timeout_s / 2)),
        "timeout": timedelta(seconds=timeout_s / 2),
    }
    retry_config: RetryConfig = {
        "max_retries": 10,
        "retry_timeout": timedelta(seconds=timeout_s * 3 / 4),
        "backoff": {
            "init_backoff": timedelta(seconds=0.1),
            # The client panics if it is not above the initial pause.
            "max_backoff": timedelta(seconds=min(2, max(0.2, timeout_s / 8))),
            "base": 2,
        },
    }
    try:
        match settings.scheme:
            case "gs":
                return GCSStore(
                    settings.container,
                    config=_build_google_config(settings),
                    client_options=client_options,
                    retry_config=retry_config,
                )
            case "az":
                return AzureStore(
                    settings.container,
                    config=_build_azure_config(settings),
                    client_options=client_options,
                    retry_config=retry_config,
                )
            case _:
                return S3Store(
                    settings.container,
                    config=_build_s3_config(settings),
                    client_options=client_options,
                    retry_config=retry_config,
                )
    except (BaseError, OSError, ValueError) as cause:
        raise build_client_error(cause, settings) from cause


def _build_s3_config(settings: ObjectSettings) -> "S3Config":
    config: S3Config = {
        "conditional_put": "etag",
        "disable_bulk_delete": True,  # some compatible services do not support it
    }
    if settings.region is not None:
        config["region"] = settings.region
    if settings.endpoint is not None:
        # It takes precedence over the environment variables that name an endpoint.
        config["aws_endpoint_url_s3"] = settings.endpoint
    return config


def _build_google_config(settings: ObjectSettings) -> "GCSConfig":
    return {} if settings.endpoint is None else {"base_url": settings.endpoint}


def _build_azure_config(settings: ObjectSettings) -> "AzureConfig":
    config: AzureConfig = {}
    if settings.account is not None:
        config["account_name"] = settings.account
    if settings.endpoint is not None:
        config["endpoint"] = settings.endpoint
    return config


class ObjectStorage:
    """`ConditionalObjects` in a bucket or a container. Thread-safe."""

    def __init__(self, client: Client, settings: ObjectSettings, timeout_s: float) -> None:
        """Use a client that `open_client` created for the same settings."""
        self._client = client
        self._settings = settings
        self._timeout_s = timeout_s

    @property
    def max_object_bytes(self) -> int:
        """See `ConditionalObjects.max_object_bytes`."""
        return MAX_OBJECT_BYTES

    def get(self, key: str) -> StoredObject | None:
        """See `ConditionalObjects.get`."""
        found = self._read(key)
        return None if found is None else found[1]

    def _read(self, key: str) -> tuple[bytes, StoredObject] | None:
        """Return the first line of an object, and the object without this line; None if it does not exist."""
        try:
            result = self._client.get(self._settings.build_path(key))
            content, meta = bytes(result.bytes()), result.meta
        except FileNotFoundError as cause:
            if classify_failure(cause).is_missing_object:
                return None
            raise build_storage_error(cause, self._settings, "read", key, self._timeout_s) from cause
        except (BaseError, OSError) as cause:
            raise build_storage_error(cause, self._settings, "read", key, self._timeout_s) from cause
        divided = split_first_line(content)
        if divided is None:
            raise build_foreign_object_error(self._settings, key)
        first_line, data = divided
        return first_line, StoredObject(data, self._choose_version(meta["e_tag"], meta["version"]))

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """See `ConditionalObjects.list_keys`."""
        root = self._settings.build_path("")
        folder = prefix.rpartition("/")[0]  # the client lists whole folders only
        try:
            chunks = list(self._client.list(f"{root}{folder}"))
        except (BaseError, OSError) as cause:
            raise build_storage_error(cause, self._settings, "list", prefix, self._timeout_s) from cause
        keys = (item["path"].removeprefix(root) for chunk in chunks for item in chunk)
        return tuple(sorted(key for key in keys if key.startswith(prefix)))

    def list_projects(self) -> tuple[tuple[str, str], ...]:
        """See `ListsProjects.list_projects`. The result includes environments without a state."""
        root = self._settings.folder.split("/")[:-2]
        return tuple(
            sorted(
                (project, environment)
                for project in self._list_folders(root)
                for environment in self._list_folders([*root, project])
            )
        )

    def _list_folders(self, parts: list[str]) -> list[str]:
        """Return the names of the folders in a folder of the bucket."""
        prefix = "/".join(parts)
        try:
            result = self._client.list_with_delimiter(prefix or None)
        except (BaseError, OSError) as cause:
            raise build_storage_error(cause, self._settings, "list", prefix, self._timeout_s) from cause
        return [path.rstrip("/").rpartition("/")[2] for path in result["common_prefixes"]]

    def create(self, key: str, data: bytes) -> ObjectVersion:
        """See `ConditionalObjects.create`."""
        return self._write(key, data, None)

    def replace(self, key: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        """See `ConditionalObjects.replace`."""
        return self._write(key, data, version)

    def _write(self, key: str, data: bytes, version: ObjectVersion | None) -> ObjectVersion:
        """Write an object if its current version is ``version``; None means that the object must not exist.

        The client repeats requests that failed. If an earlier request took effect, the repeated request
        conflicts with it. The first line of the object then shows that this call wrote the object.
        """
        if len(data) > MAX_OBJECT_BYTES:
            raise ValueError(f"'{key}' has {len(data)} bytes")
        first_line = make_first_line()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                result = self._client.put(
                    self._settings.build_path(key),
                    first_line + data,
                    attributes=_NO_CACHE,
                    mode=self._build_condition(version),
                    use_multipart=False,
                )
                return self._choose_version(result["e_tag"], result["version"])
            except (AlreadyExistsError, PreconditionError) as cause:
                if classify_failure(cause).is_missing_container:
                    raise build_storage_error(cause, self._settings, "write", key, self._timeout_s) from cause
                stored = self._read(key)
                if stored is not None and stored[0] == first_line:
                    return stored[1].version
                # S3 also refuses a creation if the object is deleted at the same time.
                if stored is None and version is None and attempt < _ATTEMPTS:
                    continue
                raise ObjectConflict(key) from None
            except (BaseError, OSError) as cause:
                if attempt == _ATTEMPTS or not classify_failure(cause).has_unknown_outcome:
                    raise build_storage_error(cause, self._settings, "write", key, self._timeout_s) from cause
        raise ObjectConflict(key)

    def _build_condition(self, version: ObjectVersion | None) -> "PutMode":
        if version is None:
            return "create"
        return {"version": version} if self._settings.service.has_generations else {"e_tag": version}

    def _choose_version(self, e_tag: str | None, generation: str | None) -> ObjectVersion:
        """Return the part of an object's version that conditional writes compare: the generation or the ETag.

        Services return more than that, but the rest can differ between writes and reads. For example, if
        versioning is suspended for a bucket, S3 returns the version id ``null`` for reads, but none for
        writes.
        """
        version = generation if self._settings.service.has_generations else e_tag
        if not version:
            name = "generation" if self._settings.service.has_generations else "ETag"
            raise build_unsafe_error(self._settings, f"a response has no {name}")
        return ObjectVersion(version)

    def delete(self, keys: Iterable[str]) -> None:
        """See `ConditionalObjects.delete`."""
        all_keys = tuple(keys)
        if len(all_keys) == 1:
            self._delete_object(all_keys[0])
        elif all_keys:
            with ThreadPoolExecutor(min(_THREADS, len(all_keys)), thread_name_prefix="deletions") as pool:
                list(pool.map(self._delete_object, all_keys))

    def _delete_object(self, key: str) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._client.delete(self._settings.build_path(key))
                return
            except (BaseError, OSError) as cause:
                failure = classify_failure(cause)
                # Azure deletes objects in batches, and its response for one of them has no error code.
                if isinstance(cause, FileNotFoundError) and not failure.is_missing_container:
                    return
                if attempt == _ATTEMPTS or not failure.has_unknown_outcome:
                    raise build_storage_error(
                        cause, self._settings, "delete", key, self._timeout_s
                    ) from cause

    def get_location(self, key: str) -> str:
        """See `ConditionalObjects.get_location`."""
        return self._settings.build_url(key)

    def close(self) -> None:
        """Do nothing. The client closes its connections when Python's garbage collector removes it."""
