"""The names of schema types and compatibility levels, for manifests and options of commands.

This module imports no other modules of kdeclare, so that the help of commands is shown quickly.
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
