"""The rules of single destination types, beyond names and types of keys (service.md, 1.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.emulator.refusal import Refusal, invalid

_COMPRESSIONS = {
    "JSONLines": ["gzip", "brotli"],
    "Parquet": ["zstd", "lz4", "snappy", "gzip", "brotli"],
}
_CAPTURE_ADDRESSES = ("https://us.i.posthog.com/batch/", "https://eu.i.posthog.com/batch/")
_SIGN_IN_SECRETS = {
    "password": ("password", "Password is required if authentication type is password"),
    "keypair": ("private_key", "Private key is required if authentication type is key pair"),
}
_COPY_INPUTS = {"s3_bucket", "region_name", "authorization", "bucket_credentials"}
_AWS_KEYS = {"aws_access_key_id", "aws_secret_access_key"}


@dataclass(frozen=True, slots=True)
class Judged:
    """A config as a rule sees it.

    sent
        The submitted config.
    merged
        The submitted config merged into the stored one, at every level.
    newest
        Whether the server is that of 2026, which judges the merged config throughout.
    stored
        The config before the write, empty for a new export.
    is_s3
        Whether an id is that of an integration of AWS S3 in the project.
    """

    sent: Mapping[str, Any]
    merged: Mapping[str, Any]
    newest: bool
    stored: Mapping[str, Any]
    is_s3: Callable[[int], bool]


def check_config(type_name: str, judged: Judged) -> None:
    """Raise Refusal (400, attr `destination`) if a rule of the type refuses the config."""
    for rule in _RULES.get(type_name, ()):
        rule(judged)


def wrong(detail: str) -> Refusal:
    """Return the refusal (400) of a whole destination."""
    return invalid("destination", detail)


def integration_id(value: Any) -> int | None:
    """Return the id of an integration inside a config: a number, also as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def writes_codec(config: Mapping[str, Any]) -> bool:
    """Return whether names of Parquet files have the codec, where nothing is set (1.5)."""
    return config.get("file_format") == "Parquet" and config.get("compression") is not None


def _check_extension(judged: Judged) -> None:
    """Refuse the older names of Parquet files for an export that does not write them."""
    before = judged.stored.get("legacy_parquet_extension", writes_codec(judged.stored))
    if judged.newest and judged.sent.get("legacy_parquet_extension") is True and not before:
        raise wrong(
            "'legacy_parquet_extension' can only stay on for an export that already writes the "
            "compression codec into its Parquet file names. It cannot be turned on for a new "
            "export, or turned back on once an export moved to the standard '.parquet' extension."
        )


def _check_files(judged: Judged) -> None:
    """Check format and compression. Old servers judge the submitted config alone."""
    config = judged.merged if judged.newest else judged.sent
    file_format = config.get("file_format", "JSONLines")
    if file_format not in _COMPRESSIONS:
        raise wrong(
            f"File format {file_format} is not supported. "
            f"Supported file formats are {list(_COMPRESSIONS)}"
        )
    compression = config.get("compression")
    supported = _COMPRESSIONS[file_format]
    if compression and compression not in supported:
        raise wrong(
            f"Compression {compression} is not supported for file format {file_format}. "
            f"Supported compressions are {supported}"
        )


def _check_blank(judged: Judged) -> None:
    """Refuse blank keys of a bucket, in the newest server."""
    blank = [
        name
        for name in ("bucket_name", "region", "prefix")
        if judged.newest and not str(judged.sent.get(name, "x")).strip()
    ]
    if blank:
        raise wrong(f"The following inputs are empty: {blank}")


def _check_snowflake(judged: Judged) -> None:
    """Check the secret of the authentication type, if that is sent; a stored secret counts."""
    kind = judged.sent.get("authentication_type")
    secret, detail = _SIGN_IN_SECRETS.get(str(kind), ("", ""))
    if secret and not judged.newest and judged.merged.get(secret) is None:
        raise wrong(detail)


def _check_copy(judged: Judged) -> None:
    """Check the inputs of COPY. The newest server also takes ids of integrations."""
    if judged.merged.get("mode") != "COPY":
        return
    inputs = judged.merged.get("copy_inputs")
    if not isinstance(inputs, dict) or not inputs:
        raise wrong("Missing required inputs for 'COPY'")
    if _COPY_INPUTS - set(inputs):
        raise wrong("Missing required input for 'COPY'")
    credentials, authorization = inputs["bucket_credentials"], inputs["authorization"]
    named = {name: judged.newest and _named(judged, name, inputs[name]) for name in _STICKY}
    if not named["bucket_credentials"] and not _has_keys(credentials):
        raise wrong("Missing required bucket credentials for 'COPY'")
    if named["authorization"]:
        return
    if isinstance(authorization, dict) and not _has_keys(authorization):
        raise wrong("Missing required credentials for 'COPY'")
    if isinstance(authorization, str) and not authorization.strip():
        raise wrong("Missing required IAM role for 'COPY'")
    if judged.newest and not isinstance(authorization, (dict, str)):
        raise wrong(
            "Authorization for 'COPY' must be an IAM role ARN, AWS credentials, or an "
            "integration ID."
        )


def _named(judged: Judged, name: str, value: Any) -> bool:
    """Return whether an input of COPY names an integration. Raise Refusal."""
    identity = integration_id(value)
    before = judged.stored.get("copy_inputs")
    if identity is not None:
        if not judged.is_s3(identity):
            raise wrong(f"'{name}' does not reference an AWS S3 integration of this project.")
    elif isinstance(before, dict) and integration_id(before.get(name)) is not None:
        raise wrong(
            f"Cannot switch '{name}' from an integration to inline credentials. Send a different "
            "integration ID to swap, or omit the field to keep the current one."
        )
    return identity is not None


def _has_keys(value: Any) -> bool:
    return isinstance(value, dict) and set(value) >= _AWS_KEYS


def _check_address(judged: Judged) -> None:
    url = judged.merged.get("url")
    if judged.newest and url and url not in _CAPTURE_ADDRESSES:
        raise wrong(f"Invalid destination URL: {url}")


_STICKY = ("bucket_credentials", "authorization")
_BUCKET = (_check_extension, _check_blank, _check_files)
_RULES: Mapping[str, tuple[Callable[[Judged], None], ...]] = {
    "S3": (_check_files,),
    "AwsS3": _BUCKET,
    "S3Compatible": _BUCKET,
    "AzureBlob": (_check_extension, _check_files),
    "Snowflake": (_check_snowflake,),
    "Redshift": (_check_copy,),
    "HTTP": (_check_address,),
}
