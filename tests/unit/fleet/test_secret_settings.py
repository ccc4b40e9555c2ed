"""Recognition of Spark settings that contain secrets."""

import pytest

from kdeclare.fleet.spark.session import _build_submit_arguments
from kdeclare.fleet.spark.settings import build_session_defaults

SECRETS = [
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.s3a.session.token",
    "spark.hadoop.fs.s3a.encryption.key",
    "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.fixed.token.shop.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.container.shop.blob.core.windows.net",
    "spark.hadoop.fs.azure.account.oauth2.client.secret",
    "spark.hadoop.google.cloud.auth.service.account.private.key",
    "spark.hadoop.fs.oss.accessKeyId",
    "spark.ssl.keyPassword",
    "spark.authenticate.secret",
]


@pytest.mark.parametrize("key", SECRETS)
def test_submit_arguments_omit_secrets(key: str) -> None:
    assert "s3cr3t" not in _build_submit_arguments(
        "local[2]", {key: "s3cr3t", "spark.ui.port": "0"}, "pyspark-shell"
    )


def test_submit_arguments_include_startup_settings() -> None:
    needed = {"spark.driver.memory": "2g", "spark.jars.packages": "a:b:1", "spark.hadoop.sasl.qop": "auth"}
    given = "--conf spark.master=yarn pyspark-shell"
    told = _build_submit_arguments(None, needed, given)
    assert told == (
        "--conf spark.master=yarn --conf spark.driver.memory=2g --conf spark.jars.packages=a:b:1 "
        "--conf spark.hadoop.sasl.qop=auth pyspark-shell"
    )
    assert _build_submit_arguments("local[2]", {}, given).endswith(
        "--conf 'spark.master=local[2]' pyspark-shell"
    )


def test_session_defaults_redact_secrets() -> None:
    assert "sas" in build_session_defaults("local[2]")["spark.redaction.regex"]
