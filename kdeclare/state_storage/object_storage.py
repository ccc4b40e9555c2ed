"""The entry points for states in object storage: ``s3://``, ``gs://`` and ``az://``.

This module does not import the client library, so that commands without a shared state start quickly.
"""

from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.core.storage.location import StateLocation, StorageContext
from kdeclare.state_storage.object_settings import build_settings
from kdeclare.state_storage.object_storage_problems import build_missing_library_error


def open_storage(location: StateLocation, context: StorageContext) -> ConditionalObjects:
    """Open a bucket or a container. No request is sent yet. See `OpenStorage`."""
    settings = build_settings(location, context.environ)
    try:
        from kdeclare.state_storage.object_client import ObjectStorage, open_client
    except ModuleNotFoundError as cause:
        if (cause.name or "").partition(".")[0] != "obstore":
            raise
        raise build_missing_library_error(location.scheme) from cause
    return ObjectStorage(open_client(settings, context.timeout_s), settings, context.timeout_s)
