"""The names of schema types and compatibility levels, for manifests and command options.

This module imports no other modules of kdeclare, so that help for commands is shown quickly.
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
