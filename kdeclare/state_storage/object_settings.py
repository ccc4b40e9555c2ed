"""The URL of a bucket or a container, and the client settings that it determines."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.storage.location import StateLocation, build_location_error


@dataclass(frozen=True, slots=True)
class ObjectService:
    """A service for object storage, with the properties in which the services differ.

    name: the name of the service.
    container: what the service calls a container of objects.
    example: an example of a URL.
    options: the options of the URL that only this service has.
    endpoint_variables: the environment variables that can set the endpoint. The first variable that is set
        takes precedence.
    has_generations: whether conditional updates use a generation (Google) instead of an ETag.
    credentials: where the client finds credentials, for messages.
    permissions: the permissions that the credentials need, for messages.
    """

    name: str
    container: str
    example: str
    options: tuple[str, ...]
    endpoint_variables: tuple[str, ...]
    has_generations: bool
    credentials: str
    permissions: str


SERVICES: Mapping[str, ObjectService] = {
    "s3": ObjectService(
        name="S3",
        container="bucket",
        example="s3://my-bucket/kdeclare?region=eu-central-1",
        options=("region",),
        endpoint_variables=("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
        has_generations=False,
        credentials="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN for temporary "
        "credentials), or AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or a role of the machine or the "
        "container. Profiles in ~/.aws are not read; `aws configure export-credentials --format env` prints "
        "the variables for a profile",
        permissions="s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject on its "
        "objects",
    ),
    "gs": ObjectService(
        name="Google Cloud Storage",
        container="bucket",
        example="gs://my-bucket/kdeclare",
        options=(),
        endpoint_variables=("GOOGLE_BASE_URL",),
        has_generations=True,
        credentials="GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, `gcloud auth "
        "application-default login`, or the service account of the machine",
        permissions="the role 'Storage Object User' (roles/storage.objectUser) on the bucket",
    ),
    "az": ObjectService(
        name="Azure Blob Storage",
        container="container",
        example="az://my-container/kdeclare?account=myaccount",
        options=("account",),
        endpoint_variables=("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
        has_generations=False,
        credentials="AZURE_STORAGE_ACCOUNT_KEY; or AZURE_STORAGE_SAS_KEY; or AZURE_TENANT_ID and "
        "AZURE_CLIENT_ID, with either AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE; or the managed "
        "identity of the machine",
        permissions="the role 'Storage Blob Data Contributor' on the container",
    ),
}
"""The services by the scheme of their URLs."""

SECRET_VARIABLES = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)
"""The environment variables with credentials. Their values are removed from error messages."""

_CONTAINER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,221}")
_LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no", ""})


@dataclass(frozen=True, slots=True)
class ObjectSettings:
    """The location of the objects of a state.

    container: the bucket or the container. folder: the path of the objects, without a slash at either end.
    endpoint: the address of the service; None for the service's own address. is_plain_http: whether requests
    are sent without TLS. region: the region of a bucket. account: the account of a container.
    """

    scheme: str
    container: str
    folder: str
    endpoint: str | None = None
    is_plain_http: bool = False
    region: str | None = None
    account: str | None = None

    @property
    def service(self) -> ObjectService:
        """The service that stores the objects."""
        return SERVICES[self.scheme]

    def build_path(self, key: str) -> str:
        """Return the name that the object with this key has in the bucket or container."""
        return f"{self.folder}/{key}"

    def build_url(self, key: str) -> str:
        """Return the URL of the object with a key, for messages."""
        return f"{self.scheme}://{self.container}/{self.folder}/{key}"


def build_settings(location: StateLocation, environ: Mapping[str, str]) -> ObjectSettings:
    """Check the URL of a state. Raises KdeclareError."""
    service = SERVICES[location.scheme]
    # The app reads the option 'lease'.
    location.check_options("endpoint", "allow_http", "lease", *service.options)
    if not _CONTAINER_NAME.fullmatch(location.host):
        raise build_location_error(
            f"'{location.url}' does not name a {service.container}.", f"Write, for example, {service.example}"
        )
    folder = "/".join(filter(None, (location.path, location.project, location.environment)))
    if any(part in ("", ".", "..") for part in folder.split("/")):
        raise build_location_error(
            f"The path of '{location.url}' has a part that is empty, '.' or '..'.",
            "Remove this part from the path.",
        )
    account = location.options.get("account") or environ.get("AZURE_STORAGE_ACCOUNT_NAME") or None
    if location.scheme == "az" and account is None:
        raise build_location_error(
            f"'{location.url}' does not name the storage account.",
            "Add ?account=NAME to the URL, or set AZURE_STORAGE_ACCOUNT_NAME.",
        )
    variables = (environ.get(name) for name in service.endpoint_variables)
    endpoint = location.options.get("endpoint") or next(filter(None, variables), None)
    return ObjectSettings(
        scheme=location.scheme,
        container=location.host,
        folder=folder,
        endpoint=endpoint,
        is_plain_http=endpoint is not None and _check_endpoint(location, endpoint),
        region=location.options.get("region"),
        account=account,
    )


def _check_endpoint(location: StateLocation, endpoint: str) -> bool:
    """Return whether an endpoint is used without TLS.

    Raises KdeclareError if the endpoint is not a URL, or if the state would be sent over a network without
    encryption.
    """
    allow_text = location.options.get("allow_http", "").lower()
    if allow_text not in _TRUE | _FALSE:
        raise build_location_error(
            f"'{location.url}': 'allow_http' is not a boolean.", "Write allow_http=true."
        )
    try:
        parts = urlsplit(endpoint)
        host, has_password = parts.hostname, parts.password is not None
    except ValueError:
        host, has_password = None, False
    if has_password:
        raise build_location_error(
            "The endpoint of the state's location contains a password.",
            f"Pass credentials in environment variables: {SERVICES[location.scheme].credentials}.",
        )
    if host is None or parts.scheme not in ("http", "https"):
        raise build_location_error(
            f"The endpoint '{endpoint}' is not a URL.",
            "Write, for example, endpoint=https://minio.example.com",
        )
    if parts.scheme == "https":
        return False
    if host not in _LOCAL_HOSTS and allow_text not in _TRUE:
        raise build_location_error(
            f"The endpoint '{endpoint}' does not use TLS, so others on the network could change the state.",
            "Use https, or add allow_http=true to the URL of the state.",
        )
    return True
