"""The rules of single destination types, beyond names and types of keys (docs/service.md, 1.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.emulator.refusal import Refusal, invalid

_COMPRESSIONS = {
    "JSONLines": ("gzip", "brotli"),
    "Parquet": ("zstd", "lz4", "snappy", "gzip", "brotli"),
}
_CAPTURE_ADDRESSES = ("https://us.i.posthog.com/batch/", "https://eu.i.posthog.com/batch/")
_SIGN_IN_SECRETS = {"password": "password", "keypair": "private_key"}


@dataclass(frozen=True, slots=True)
class Judged:
    """A config as a rule sees it.

    sent
        The submitted config.
    merged
        The submitted config merged into the stored one, at every level.
    newest
        Whether the server is that of 2026, which judges the merged config throughout.
    creating
        Whether the export is new.
    """

    sent: Mapping[str, Any]
    merged: Mapping[str, Any]
    newest: bool
    creating: bool


def check_config(type_name: str, judged: Judged) -> None:
    """Raise Refusal (400, attr `destination`) if a rule of the type refuses the config."""
    for rule in _RULES.get(type_name, ()):
        rule(judged)


def wrong(detail: str) -> Refusal:
    """Return the refusal (400) of a whole destination."""
    return invalid("destination", "invalid_input", detail)


def _listed(names: Mapping[str, Any] | tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _check_files(judged: Judged) -> None:
    """Check format and compression. Old servers judge the submitted config alone."""
    config = judged.merged if judged.newest else judged.sent
    file_format = config.get("file_format", "JSONLines")
    if file_format not in _COMPRESSIONS:
        raise wrong(
            f"File format '{file_format}' is not supported. "
            f"Supported file formats: {_listed(_COMPRESSIONS)}."
        )
    compression = config.get("compression")
    absent = compression is None or (compression == "" and not judged.newest)
    if not absent and compression not in _COMPRESSIONS[file_format]:
        raise wrong(
            f"Compression '{compression}' is not supported for file format '{file_format}'. "
            f"Supported compressions: {_listed(_COMPRESSIONS[file_format])}."
        )
    if judged.newest and judged.creating and config.get("legacy_parquet_extension") is True:
        raise wrong("legacy_parquet_extension cannot be enabled for a new batch export.")


def _not_blank(*names: str) -> Callable[[Judged], None]:
    """Return a rule of the newest server: these keys, where present, are not blank."""

    def check(judged: Judged) -> None:
        for name in names if judged.newest else ():
            value = judged.merged.get(name)
            if isinstance(value, str) and not value.strip():
                raise wrong(f"'{name}' cannot be empty.")

    return check


def _check_snowflake(judged: Judged) -> None:
    """Check the secret of the authentication type, if that is sent; a stored secret counts."""
    if judged.newest or "authentication_type" not in judged.sent:
        return
    kind = judged.sent["authentication_type"]
    secret = _SIGN_IN_SECRETS.get(str(kind))
    if secret is None:
        raise wrong(f"Authentication type '{kind}' is not supported.")
    if judged.merged.get(secret) is None:
        raise wrong(f"'{secret}' is required for authentication type '{kind}'.")


def _check_redshift(judged: Judged) -> None:
    """Check the inputs of COPY. The newest server also takes ids of integrations."""
    if judged.merged.get("mode") != "COPY":
        return
    inputs = judged.merged.get("copy_inputs")
    inputs = inputs if isinstance(inputs, dict) else {}
    for name in ("s3_bucket", "region_name", "authorization", "bucket_credentials"):
        if not inputs.get(name):
            raise wrong(f"'{name}' is required for mode COPY.")
    credentials = inputs["bucket_credentials"]
    if judged.newest and isinstance(credentials, int):
        return
    for name in ("aws_access_key_id", "aws_secret_access_key"):
        if not (isinstance(credentials, dict) and credentials.get(name)):
            raise wrong(f"'{name}' is required for mode COPY.")


def _check_address(judged: Judged) -> None:
    if judged.newest and judged.merged.get("url") not in _CAPTURE_ADDRESSES:
        raise wrong(f"'url' must be one of {_listed(_CAPTURE_ADDRESSES)}.")


_BUCKET = (_check_files, _not_blank("bucket_name", "region", "prefix"))
_RULES: Mapping[str, tuple[Callable[[Judged], None], ...]] = {
    "S3": (_check_files,),
    "AwsS3": _BUCKET,
    "S3Compatible": _BUCKET,
    "AzureBlob": (_check_files, _not_blank("container_name")),
    "Snowflake": (_check_snowflake,),
    "Redshift": (_check_redshift,),
    "HTTP": (_check_address,),
}
