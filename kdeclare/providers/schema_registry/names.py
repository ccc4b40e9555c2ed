"""The names of schema types and compatibility levels, for manifests and options of commands.

This module has no imports of its own, so that the help of commands needs no models.
"""

from typing import Literal

SchemaTypeName = Literal["AVRO", "JSON", "PROTOBUF"]
LevelName = Literal[
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
]
