"""Hypothesis strategies for ACL bindings and requests that often match each other."""

from collections.abc import Sequence

from hypothesis import strategies as st

from kdeclare.providers.kafka.acl.authorization import AccessRequest
from kdeclare.providers.kafka.acl.binding import (
    ALLOW,
    CLUSTER,
    CLUSTER_NAME,
    DENY,
    LITERAL,
    PREFIXED,
    Binding,
    list_operations,
)

TYPES = ("topic", "group", "transactionalId", CLUSTER)
NAMES = ("a", "ab", "abc", "b", "*")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "user:alice")
HOSTS = ("*", "10.0.0.1", "10.0.0.2")


@st.composite
def bindings(draw: st.DrawFn, types: Sequence[str] = TYPES) -> Binding:
    """Bindings that brokers accept, from few names."""
    resource_type = draw(st.sampled_from(types))
    if resource_type == CLUSTER:
        name, pattern = CLUSTER_NAME, LITERAL
    else:
        name, pattern = draw(st.sampled_from(NAMES)), draw(st.sampled_from((LITERAL, PREFIXED)))
    return Binding(
        resource_type,
        name,
        pattern,
        draw(st.sampled_from(PRINCIPALS)),
        draw(st.sampled_from(HOSTS)),
        draw(st.sampled_from(list_operations(resource_type))),
        draw(st.sampled_from((ALLOW, ALLOW, DENY))),
    )


@st.composite
def requests(draw: st.DrawFn) -> AccessRequest:
    """Requests of authenticated clients."""
    resource_type = draw(st.sampled_from(TYPES))
    name = CLUSTER_NAME if resource_type == CLUSTER else draw(st.sampled_from(("a", "ab", "abd", "b", "c")))
    return AccessRequest(
        draw(st.sampled_from(("User:alice", "User:bob", "User:carol"))),
        draw(st.sampled_from(list_operations(resource_type)[:-1])),
        resource_type,
        name,
        draw(st.sampled_from(HOSTS[1:])),
    )


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8) | st.sampled_from(
    ["*", "**", "a*", "%", "a b", "a:b", "%2A", "from", "\n"]
)


@st.composite
def odd_bindings(draw: st.DrawFn) -> Binding:
    """Bindings with arbitrary names, as brokers accept them."""
    return Binding(
        draw(st.sampled_from(("topic", "group", "user", "resource-9"))),
        draw(texts),
        draw(st.sampled_from((LITERAL, PREFIXED))),
        draw(texts),
        draw(texts | st.just("")),
        draw(st.sampled_from(("READ", "ALL", "operation-16"))),
        draw(st.sampled_from((ALLOW, DENY))),
    )
