"""The settings of a named HTTP endpoint in an environment of the project file."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from kdeclare.core.provider.connection import SettingsFile
from kdeclare.core.secrets.secret_refs import Secret, SecretText
from kdeclare.http.target import HttpTarget
from kdeclare.http.urls import HEADER_NAME, explain_url_problem, is_plain_http


class TlsSettings(BaseModel):
    """TLS settings: PEM files, relative to the project's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    caFile: Annotated[  # noqa: N815
        str | None, Field(description="The CA certificates that verify the servers' certificates.")
    ] = None
    certFile: Annotated[str | None, Field(description="The client certificate.")] = None  # noqa: N815
    keyFile: Annotated[  # noqa: N815
        str | None, Field(description="The private key of the client certificate.")
    ] = None

    @model_validator(mode="after")
    def _check_key(self) -> "TlsSettings":
        if self.keyFile is not None and self.certFile is None:
            raise ValueError("'keyFile' requires 'certFile', which is missing")
        return self


class BasicAuthSettings(BaseModel):
    """The user name and the password for HTTP basic authentication."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    username: Annotated[str, Field(min_length=1, description="The user name, without a colon.")]
    password: Annotated[SecretText, Field(description="The password, as a reference: ${env.NAME}.")]

    @field_validator("username")
    @classmethod
    def _check_username(cls, username: str) -> str:
        if ":" in username:
            raise ValueError("a user name for basic authentication cannot contain a colon")
        return username


class HttpEndpointSettings(BaseModel):
    """One named endpoint: the URLs of equivalent servers, and how to connect to them."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    urls: Annotated[list[str], Field(min_length=1, description="The URLs of the servers.")]
    tls: Annotated[TlsSettings, Field(description="TLS settings, as PEM files.")] = (
        TlsSettings.model_construct()  # without a validator, which would be built with each import
    )
    headers: Annotated[
        dict[str, SecretText],
        Field(description="HTTP headers for every request. Use references as values, as in ${env.TOKEN}."),
    ] = {}
    basicAuth: Annotated[  # noqa: N815
        BasicAuthSettings | None,
        Field(description="The user name and password for basic authentication."),
    ] = None
    bearerToken: Annotated[  # noqa: N815
        SecretText | None, Field(description="A bearer token, as a reference such as ${env.TOKEN}.")
    ] = None

    @field_validator("urls")
    @classmethod
    def _check_urls(cls, urls: list[str]) -> list[str]:
        for url in urls:
            if problem := explain_url_problem(url, may_have_path=True):
                raise ValueError(problem)
        stripped_urls = [url.rstrip("/") for url in urls]
        if len(set(stripped_urls)) < len(stripped_urls):
            raise ValueError("a URL is listed twice")
        return stripped_urls

    @model_validator(mode="after")
    def _check_authentication(self) -> "HttpEndpointSettings":
        names = {name.lower() for name in self.headers}
        invalid = next((name for name in self.headers if not HEADER_NAME.fullmatch(name)), None)
        if invalid is not None:
            raise ValueError(f"'{invalid}' is not the name of an HTTP header")
        sources = [
            name
            for name, is_set in (
                ("headers.Authorization", "authorization" in names),
                ("basicAuth", self.basicAuth is not None),
                ("bearerToken", self.bearerToken is not None),
            )
            if is_set
        ]
        if len(sources) > 1:
            raise ValueError(f"set only one of {', '.join(sources)}")
        literal = next((name for name, secret in self._list_secrets() if _is_literal(secret)), None)
        if literal is not None:
            raise ValueError(f"the value of {literal} must contain a reference, such as ${{env.NAME}}")
        return self

    def _list_secrets(self) -> Iterator[tuple[str, Secret]]:
        yield from ((f"headers.{name}", value) for name, value in self.headers.items())
        if self.basicAuth is not None:
            yield "basicAuth.password", self.basicAuth.password
        if self.bearerToken is not None:
            yield "bearerToken", self.bearerToken

    @property
    def sends_secrets_unencrypted(self) -> bool:
        """Whether headers, which can contain credentials, are sent to another host without encryption."""
        has_headers = bool(self.headers) or self.basicAuth is not None or self.bearerToken is not None
        return has_headers and any(is_plain_http(url) for url in self.urls)

    def build_target(self, folder: Path) -> HttpTarget:
        """Return the data for connecting to the endpoint. ``folder`` is the folder of the project file."""
        headers = [(name, secret.value) for name, secret in self.headers.items()]
        if self.basicAuth is not None:
            credentials = f"{self.basicAuth.username}:{self.basicAuth.password.value}".encode()
            headers.append(("Authorization", f"Basic {base64.b64encode(credentials).decode()}"))
        if self.bearerToken is not None:
            headers.append(("Authorization", f"Bearer {self.bearerToken.value}"))
        tls = self.tls
        return HttpTarget(tuple(self.urls), tls.caFile, tls.certFile, tls.keyFile, folder, tuple(headers))

    def list_files(self) -> tuple[SettingsFile, ...]:
        """Return the TLS files, for tasks on other machines."""
        paths = (self.tls.caFile, self.tls.certFile, self.tls.keyFile)
        return tuple(SettingsFile(Path(path), is_in_project=True) for path in paths if path is not None)


def _is_literal(secret: Secret) -> bool:
    """Whether the value is a literal. An unresolved reference is a string that contains ``${``."""
    return secret.reference is None and "${" not in secret.value
