"""Client properties of aws-msk-iam-auth, the Java library for Amazon MSK with IAM.

kdeclare converts these properties, so that properties files for Kafka's own tools also work with kdeclare.
"""

from collections.abc import Mapping

from kdeclare.providers.kafka.client.jaas import parse_options
from kdeclare.providers.kafka.property_names import TOKEN_PROVIDER_KEY

_MECHANISM = "AWS_MSK_IAM"
_LOGIN_HANDLER = "sasl.login.callback.handler.class"
_CLIENT_HANDLER = "sasl.client.callback.handler.class"
_HANDLERS = (
    "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
)
_OPTIONS = {
    "awsProfileName": "profile",
    "awsRoleArn": "role",
    "awsRoleSessionName": "session",
}
"""For each supported option of the Java library, the corresponding option of the token provider."""


def convert_msk_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Replace the properties of aws-msk-iam-auth with those of the token provider ``msk-iam``.

    The mechanism AWS_MSK_IAM becomes OAUTHBEARER, because MSK accepts both on the same port.
    """
    mechanism = properties.get("sasl.mechanism", "").strip().upper()
    if mechanism != _MECHANISM and properties.get(_LOGIN_HANDLER, "").strip() not in _HANDLERS:
        return dict(properties)
    converted = {
        name: value
        for name, value in properties.items()
        if name != "sasl.jaas.config"
        and not (name in (_LOGIN_HANDLER, _CLIENT_HANDLER) and value.strip() in _HANDLERS)
    }
    options = parse_options(properties.get("sasl.jaas.config", ""))
    for java_name, name in _OPTIONS.items():
        if java_name in options:
            converted.setdefault(f"{TOKEN_PROVIDER_KEY}.{name}", options[java_name])
    converted["sasl.mechanism"] = "OAUTHBEARER"
    converted.setdefault(TOKEN_PROVIDER_KEY, "msk-iam")
    return converted
