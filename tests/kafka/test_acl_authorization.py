"""kdeclare's evaluation of bindings agrees with Kafka's StandardAuthorizer, which runs in a JVM."""

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdeclare.java import find_java
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_access
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.sandbox import resolve_kafka_classpath
from tests.kafka.java import QUICK_JVM, compile_java
from tests.unit.acl.acl_strategies import bindings, requests

pytestmark = pytest.mark.kafka

Authorizer = Callable[[Sequence[Binding], AccessRequest, bool], bool]

_TYPES = {"topic": "TOPIC", "group": "GROUP", "transactionalId": "TRANSACTIONAL_ID", "cluster": "CLUSTER"}


@pytest.fixture(scope="module")
def kafka_authorize(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authorizer]:
    """Kafka's decision about a request."""
    folder = tmp_path_factory.mktemp("authorizations")
    compile_java(Path(__file__).with_name("Authorizations.java"), folder)
    jvm = subprocess.Popen(
        [find_java(), *QUICK_JVM, "kdeclare.test.Authorizations"],
        env={"CLASSPATH": f"{folder}:{resolve_kafka_classpath()}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def ask(found: Sequence[Binding], request: AccessRequest, allow_if_no_acl: bool) -> bool:
        asked = [str(allow_if_no_acl).lower(), request.principal, request.host, request.operation]
        parts = [[*asked, _TYPES[request.resource_type], request.name]]
        parts += [[_TYPES[b.resource_type], b.name, b.pattern.upper(), *b[3:]] for b in found]
        assert jvm.stdin is not None
        assert jvm.stdout is not None
        jvm.stdin.write("\t".join(" ".join(words) for words in parts) + "\n")
        jvm.stdin.flush()
        answer = jvm.stdout.readline().strip()
        assert re.fullmatch("ALLOWED|DENIED", answer), answer
        return answer == "ALLOWED"

    try:
        yield ask
    finally:
        jvm.kill()
        jvm.wait()


@settings(max_examples=settings().max_examples * 100)
@given(
    found=st.lists(bindings(), max_size=10, unique=True), request=requests(), allow_if_no_acl=st.booleans()
)
def test_decisions_agree_with_standard_authorizer(
    kafka_authorize: Authorizer, found: list[Binding], request: AccessRequest, allow_if_no_acl: bool
) -> None:
    decision = decide_access(found, request, allow_if_no_acl=allow_if_no_acl)
    assert decision.is_allowed is kafka_authorize(found, request, allow_if_no_acl)
