"""Determine the action for a resource that exists only while it has at least one setting.

Kafka stores nothing else about such a resource: a quota entity without limits, or a group or a client metrics
subscription without configs, is not listed (DescribeClientQuotas, ListConfigResources).
"""

from collections.abc import Collection, Sequence

from kdeclare.core.resources.changes import Action, FieldChange


def find_settings_action(
    fields: Sequence[FieldChange], live_paths: Collection[str], *, is_declared: bool
) -> Action:
    """Return whether a change creates, deletes or updates a resource that consists of settings.

    The change creates the resource if it has no settings yet. The change deletes the resource if no manifest
    declares it anymore and the change removes all of its settings.

    live_paths: the field paths of all live settings of the resource, including unmanaged settings.
    """
    if not fields:
        return Action.UPDATE
    if is_declared:
        return Action.UPDATE if live_paths else Action.CREATE
    removed_paths = {field.path for field in fields if field.after is None}
    return Action.DELETE if removed_paths.issuperset(live_paths) else Action.UPDATE
