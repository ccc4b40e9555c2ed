"""Bad input for real workers: 400 with a helpful message, nothing written, the listener still works."""

from collections.abc import Callable

import pytest

from tests.kafka.connect.asking import KEYSTORE, KEYSTORE_PASSWORD, PATH, TRUSTSTORE, TRUSTSTORE_PASSWORD
from tests.kafka.connect.certificates import PASSWORD, Certificates
from tests.kafka.connect.workers import Crew

pytestmark = pytest.mark.kafka

Change = dict[str, str | None]

_CASES: dict[str, tuple[Callable[[Certificates], Change], str]] = {
    "no such file": (
        lambda c: {KEYSTORE: "/nowhere.p12"},
        f"{KEYSTORE}: There is no file /nowhere.p12 on this worker.",
    ),
    "a folder": (lambda c: {KEYSTORE: str(c.folder)}, f"{KEYSTORE}: This is not a regular file: {{folder}}."),
    "no key store": (
        lambda c: {KEYSTORE: str(c.authority_pem)},
        f"{KEYSTORE}: {{folder}}/ca.pem cannot be read as PKCS12: it is damaged, or of another type.",
    ),
    "no key in it": (
        lambda c: {KEYSTORE: str(c.trust)},
        f"{KEYSTORE}: {{folder}}/trust.p12 has no private key.",
    ),
    "wrong password": (
        lambda c: {KEYSTORE: str(c.store("a")), KEYSTORE_PASSWORD: "wrong"},
        f"{KEYSTORE_PASSWORD}: The password does not open {{folder}}/a.p12.",
    ),
    "wrong key password": (
        lambda c: {"listeners.https.ssl.key.password": "wrong"},
        "listeners.https.ssl.key.password: The password does not open the private key 'worker' in the file "
        "that this worker's own configuration names.",
    ),
    "wrong password of the truststore": (
        lambda c: {TRUSTSTORE_PASSWORD: "wrong"},
        f"{TRUSTSTORE_PASSWORD}: The password does not open the file that this worker's own configuration "
        "names.",
    ),
    "no such truststore": (
        lambda c: {TRUSTSTORE: "/nowhere.p12"},
        f"{TRUSTSTORE}: There is no file /nowhere.p12",
    ),
    "expired": (lambda c: {KEYSTORE: str(c.store("expired"))}, f"{KEYSTORE}: The certificate CN=expired in "),
    "a key that does not match": (
        lambda c: {KEYSTORE: str(c.folder / "mixed.p12")},
        "does not match its certificate, CN=a.",
    ),
    "another authority": (
        lambda c: {KEYSTORE: str(c.store("foreign"))},
        "The other workers would not accept this certificate",
    ),
    "a type that Connect lacks": (
        lambda c: {"listeners.https.ssl.keystore.type": "PEM"},
        "listeners.https.ssl.keystore.type: The key store type 'PEM' is not supported on this worker.",
    ),
    "a provider that is not there": (
        lambda c: {KEYSTORE: "${vault:secret:path}"},
        "This worker has no config provider 'vault' for ${vault:secret:path}.",
    ),
    "a placeholder without a value": (
        lambda c: {KEYSTORE: "${env:NEVER_SET}"},
        "This worker's config provider 'env' has no value for ${env:NEVER_SET}.",
    ),
    "an unknown key": (lambda c: {"group.id": "other"}, "group.id: This key cannot be overridden while the"),
    "an unknown key to remove": (lambda c: {"nothing": None}, "nothing: This key cannot be overridden while"),
}


@pytest.mark.parametrize("name", _CASES)
def test_invalid_change_is_refused_by_leader_and_follower(crew: Crew, name: str) -> None:
    change, expected = _CASES[name]
    before = crew.leader().ask.status()["seen"]
    for worker in (crew.leader(), crew.followers()[0]):
        answer = worker.ask.patch(change(crew.certificates))
        assert answer.status == 400, answer.text
        assert expected.replace("{folder}", str(crew.certificates.folder)) in answer.message
    assert crew.leader().ask.status()["seen"] == before
    assert crew.leader().ask.status()["error"] is None
    assert crew.leader().ask.read_served_sha256() == crew.certificates.sha256["static"]


_BODIES: dict[str, tuple[str | bytes, str]] = {
    "nothing": (b"", "The body must be a JSON object of keys and values."),
    "no JSON": ("{'a': 1}", "The body cannot be read: it is not valid JSON at line 1, column "),
    "cut off": ('{"a": "b"', "it is not valid JSON at line 1, column "),
    "more behind it": ("{} {}", "it is not valid JSON at line 1, column "),
    "a list": ("[]", "The body must be a JSON object of keys and values."),
    "a number": (
        f'{{"{KEYSTORE}": 1}}',
        f"{KEYSTORE}: The value must be a string, or null to remove the key.",
    ),
    "a map": (f'{{"{KEYSTORE}": {{}}}}', f"{KEYSTORE}: The value must be a string, or null"),
    "a key twice": (f'{{"{KEYSTORE}": "a", "{KEYSTORE}": "b"}}', "it has a duplicate key"),
    "10 MB": (b'{"' + b"a" * 10_000_000 + b'": "b"}', "The body is longer than 65536 bytes."),
    "10 MB of blanks": (b" " * 10_000_000, "The body is longer than 65536 bytes."),
    "not UTF-8": (b'{"\xff\xfe": "b"}', "The body cannot be read: "),
    "very deep": ("[" * 5_000 + "]" * 5_000, "The body "),
}


@pytest.mark.parametrize("name", _BODIES)
@pytest.mark.parametrize("path", [PATH, f"{PATH}/validate"])
def test_invalid_body_gets_400_and_next_request_succeeds(crew: Crew, name: str, path: str) -> None:
    body, expected = _BODIES[name]
    asked = crew.workers[0].ask
    before = asked.status()["seen"]
    answer = asked("POST" if path.endswith("validate") else "PATCH", path, body)
    assert answer.status == 400, answer.text
    assert expected in answer.message
    assert asked.status()["seen"] == before


def test_validate_refuses_unknown_key(crew: Crew) -> None:
    answer = crew.workers[0].ask.validate({"group.id": "other", KEYSTORE: "x"})
    assert answer.status == 400
    assert answer.message.startswith("group.id: This key cannot be overridden while the worker runs.")
    assert KEYSTORE in answer.message


def test_patch_with_other_content_type_gets_415(crew: Crew) -> None:
    answer = crew.workers[0].ask("PATCH", PATH, "a=b", {"Content-Type": "text/plain"})
    assert (answer.status, answer.message) == (415, "HTTP 415 Unsupported Media Type")


def test_delete_of_odd_name_gets_404(crew: Crew) -> None:
    for worker in crew.workers:
        answer = worker.ask.delete("%7Bname%7D%20x")
        assert (answer.status, answer.message) == (404, "There is no override of {name} x.")


def test_worker_rotates_after_many_invalid_requests(crew: Crew) -> None:
    asked = crew.leader().ask
    for _ in range(8):
        assert asked.patch({KEYSTORE: str(crew.certificates.folder / "mixed.p12")}).status == 400
    changes = {KEYSTORE: str(crew.certificates.store("a")), KEYSTORE_PASSWORD: PASSWORD}
    assert asked.patch(changes).status == 200
    crew.await_served(crew.certificates.sha256["a"])
