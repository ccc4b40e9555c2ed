"""Build observations about the clients that a change affects. Brokers do not report all of these clients."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.units import format_count, format_names
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.group_members import GroupMembers

_MAX_NAMED = 3


def build_unknown_members(resource: str, what: str, reason: Fault | str) -> Observation:
    """Return the observation that something is unknown, because the groups of the cluster could not be read.

    what: the unknown part, as a clause such as ``which members of groups use client id 'a'``.
    """
    return wording.build_unknown(resource, None, what, reason)


def report_invisible_groups(resource: str, members: GroupMembers) -> Iterator[Observation]:
    """Yield an observation if there may be groups, or members of groups, that kdeclare does not see."""
    if not members.is_complete:
        text = f"Other groups may be affected: {wording.HIDDEN_GROUPS}."
        yield Observation(resource, "hidden-groups", ObservationLevel.UNKNOWN, text)
    if members.unknown:
        groups = format_count(len(members.unknown), "other group")
        text = (
            f"{groups} may be affected ({format_names(members.unknown)}): kdeclare cannot read the members "
            "of share groups, Kafka Streams groups, and groups of an unknown type."
        )
        figures = {"groups": len(members.unknown)}
        yield Observation(resource, "hidden-groups", ObservationLevel.UNKNOWN, text, None, figures)


def build_limited_clients(
    resource: str, clients: str, counts: Mapping[str, int], user: str | None
) -> Observation:
    """Return the observation about the group members that a lowered quota limits.

    clients: the property of these members, such as ``client id 'a'``. counts: the number of members with this
    property, by group. user: the user that the quota is restricted to, or None.
    """
    total = sum(counts.values())
    figures: dict[str, JsonValue] = {"groups": len(counts), "members": total}
    if not total:
        text = f"No known group member uses {clients}."
        return Observation(resource, "limited-clients", ObservationLevel.INFO, text, None, figures)
    names = [f"{group} ({count:,})" for group, count in sorted(counts.items(), key=lambda i: (-i[1], i[0]))]
    verb = "uses" if total == 1 else "use"
    doubt = "" if user is None else f", as user '{user}' or as another user"
    text = (
        f"{format_count(total, 'member')} of {format_count(len(counts), 'group')} {verb} {clients}{doubt}: "
        f"{format_names(names)}."
    )
    return Observation(resource, "limited-clients", ObservationLevel.EFFECT, text, None, figures)


def build_unknown_clients(resource: str, clients: str) -> Observation:
    """Return the observation that brokers do not report which clients a change affects.

    clients: what brokers do not report, as a clause such as ``which producers use client id 'a'``.
    """
    text = f"Brokers do not report {clients}."
    return Observation(resource, "unknown-clients", ObservationLevel.UNKNOWN, text)


def build_lost_access(
    resource: str, group: str, members: int, topics: Collection[str], principals: Sequence[str], *, own: bool
) -> Observation:
    """Return the observation that members of a group may lose access.

    topics: the topics that the members read now, but to which they may lose access. own: whether the members
        may lose access to the group itself. principals: the principals that lose permissions. It is unknown
        whether the members connect as one of these principals.
    """
    names = sorted(topics)
    parts = ["the group"] if own else []
    if names:
        more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
        parts.append(f"topic{'s' * (len(names) > 1)} {', '.join(names[:_MAX_NAMED])}{more}")
    text = (
        f"{format_count(members, 'member')} of group '{group}' may lose access to {' and '.join(parts)}, if "
        f"{'it connects' if members == 1 else 'they connect'} as {_format_principals(principals)}."
    )
    figures: dict[str, JsonValue] = {
        "group": group,
        "members": members,
        "topics": len(names),
        "group_access": own,
    }
    return Observation(resource, "lost-access", ObservationLevel.EFFECT, text, None, figures)


def build_other_lost_access(resource: str, groups: int) -> Observation:
    """Return the observation that members of further groups may lose access.

    groups: the number of these groups, at least 1.
    """
    text = f"Members of {format_count(groups, 'other group')} may lose access as well."
    return Observation(resource, "lost-access", ObservationLevel.EFFECT, text, None, {"groups": groups})


def build_no_lost_access(resource: str) -> Observation:
    """Return the observation that no known member of a group loses access."""
    text = "No known group member needs these permissions to read."
    return Observation(resource, "lost-access", ObservationLevel.INFO, text, None, {"groups": 0})


def _format_principals(principals: Sequence[str]) -> str:
    if len(principals) > _MAX_NAMED:
        return f"one of {len(principals):,} principals"
    return " or ".join(principals)


def build_remaining_access(
    resource: str, what: str, principals: Sequence[str], *, bindings: int, quotas: int
) -> Observation:
    """Return the observation that ACL bindings and quotas still name a deleted topic or user.

    what: ``topic`` or ``user``. principals: for a topic, the principals in the ACL bindings; otherwise empty.
    bindings, quotas: how many ACL bindings and quotas name the topic or user.
    """
    parts = [
        format_count(count, noun) for count, noun in ((bindings, "ACL binding"), (quotas, "quota")) if count
    ]
    of = f" ({format_names(principals)})" if principals else ""
    verb = "names" if bindings + quotas == 1 else "name"
    text = (
        f"{' and '.join(parts)} still {verb} the {what}{of}. A new {what} with this name would be subject "
        f"to {'it' if bindings + quotas == 1 else 'them'}."
    )
    figures = {"acl_bindings": bindings, "quotas": quotas}
    return Observation(resource, "remaining-access", ObservationLevel.INFO, text, None, figures)


def build_references(resource: str, references: Sequence[str]) -> Observation:
    """Return the observation that other declared resources refer to a deleted topic."""
    verbs = ("refers", "is") if len(references) == 1 else ("refer", "are")
    text = f"{format_names(references)} {verbs[0]} to this topic, and {verbs[1]} still declared."
    return Observation(
        resource, "references", ObservationLevel.EFFECT, text, None, {"resources": list(references)}
    )
