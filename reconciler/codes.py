"""The codes of diagnostics, each with its meaning and its hint.

SARIF and docs/reference/diagnostics.md show them apart from the messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code means.

    `hint` is the default hint of its diagnostics. `fix` is the general advice for a code whose
    diagnostics have hints of their own.
    """

    title: str
    fix: str | None = None
    hint: str | None = None

    @property
    def help(self) -> str:
        """The advice, as a sentence."""
        text = self.fix or self.hint or "see the message for the fix"
        return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


CODES: Mapping[str, Meaning] = {
    "absent-parent": Meaning(
        "A resource in a parent with `state: absent`",
        hint="set `state: absent` on it too, or choose another parent",
    ),
    "alias-bomb": Meaning("Aliases that expand to too many values", hint="use fewer aliases"),
    "ambiguous-boolean": Meaning(
        "A word that some YAML readers take for a boolean",
        "Write true or false, or quote the word if it is text.",
    ),
    "ambiguous-number": Meaning(
        "A number that YAML readers interpret differently",
        "Write it as a decimal number, or quote it if it is text.",
    ),
    "bad-encoding": Meaning("A file that is not UTF-8", "Save the file as UTF-8."),
    "bad-key": Meaning(
        "An invalid key", "Use text; in keys of resources, letters, digits, _ - and . only."
    ),
    "bad-merge": Meaning(
        "A merge key without a mapping", hint="write `<<: *name`, with &name on a mapping"
    ),
    "bad-rate": Meaning("An invalid rate", "Use a number from 0 to 1 with at most two decimals."),
    "bad-reference": Meaning(
        "A malformed reference", "Use letters, digits and _ in names of environment variables."
    ),
    "bad-timestamp": Meaning(
        "An invalid timestamp", "Use ISO 8601 with an offset, such as 2026-01-01T00:00:00Z."
    ),
    "bad-url": Meaning(
        "An invalid base URL",
        "Use http or https, a host and an optional port, without credentials.",
    ),
    "bad-yaml": Meaning("Invalid YAML", "Fix the syntax at the reported place."),
    "byte-order-mark": Meaning(
        "A byte order mark inside a file", hint="remove it; joining two files leaves one"
    ),
    "clear-text": Meaning("An API key that is sent unencrypted", hint="use https"),
    "compression-mismatch": Meaning(
        "A compression that the file format does not support",
        "Choose a compression that the file format supports.",
    ),
    "control-character": Meaning(
        "A control character in a file", hint="remove it, or write it as an escape in double quotes"
    ),
    "declared-twice": Meaning("A resource that is declared twice", hint="rename one of the keys"),
    "does-not-apply": Meaning(
        "A field that requires another value of a related field",
        "Remove it, or change the field that it depends on.",
    ),
    "duplicate-key": Meaning(
        "A key that is defined twice in a mapping", hint="remove or merge one of them"
    ),
    "empty-file": Meaning("A file without content", "Add resources, or remove it."),
    "exec-not-allowed": Meaning(
        "A secret from a command that the policy does not allow",
        "Set policy.allow_exec_secrets, or read the secret from the environment or a file.",
    ),
    "feature-flag": Meaning(
        "A value that requires a feature flag",
        "Make sure that the feature is enabled for the organization.",
    ),
    "file-too-large": Meaning("A file that is too large", hint="split it into several files"),
    "literal-secret": Meaning(
        "A secret that is written in a file",
        "Use ${secret:env:NAME}, and rotate the secret if the file was ever shared.",
    ),
    "missing-field": Meaning("A missing required field", "Set it."),
    "no-effect": Meaning(
        "An override or a list of environments without effect",
        "Add the environment to the list, or remove the override.",
    ),
    "no-files": Meaning("A pattern that matches no resource file", "Correct it or remove it."),
    "no-workspace": Meaning(
        "A folder without reconciler.yaml",
        hint="use -C to name its folder, or create one with `reconciler init`",
    ),
    "not-a-default": Meaning(
        "A field that cannot have a default", hint="write it in each resource"
    ),
    "not-a-mapping": Meaning(
        "A value that must be a mapping", "Write a mapping from keys to values."
    ),
    "not-a-number": Meaning(
        "A number that JSON cannot hold", "Write a finite number of at most 64 bits."
    ),
    "not-allowed": Meaning("A value that is not allowed", "Use one of the allowed values."),
    "not-an-override": Meaning(
        "A field that cannot be overridden", "Write it in the resource itself."
    ),
    "not-text": Meaning(
        "A value that cannot be inserted into text", "Use the reference as the whole value."
    ),
    "out-of-range": Meaning("A value outside its limits", "Use a value within the limits."),
    "outside-workspace": Meaning(
        "A path outside the workspace", "Keep all files below the folder of reconciler.yaml."
    ),
    "protected-and-absent": Meaning(
        "A protected resource with `state: absent`", hint="remove one of the two"
    ),
    "recursive-alias": Meaning("An alias that contains itself", "Write the value in full."),
    "reference-in-key": Meaning(
        "A reference in a key", hint="write the key in full; references are resolved in values only"
    ),
    "same-field-twice": Meaning("A field that is set under two names", hint="remove one of them"),
    "same-former-name": Meaning(
        "Two resources with the same former name",
        hint="remove it from `renamed_from` of one of them",
    ),
    "same-id": Meaning(
        "Two resources with the same id", hint="remove one of them, or correct its `id`"
    ),
    "same-name": Meaning(
        "Two resources with the same name and parent",
        hint="rename one of them, or pin both by `id`",
    ),
    "secret-in-plain-field": Meaning(
        "A secret in a field that is not secret",
        "Use ${env:NAME} or ${var:NAME}: everyone with read access sees the field.",
    ),
    "several-documents": Meaning(
        "Several YAML documents in one file", hint="move it to a file of its own"
    ),
    "similar-name": Meaning("Names that differ only in case", hint="rename one of them"),
    "tab-indent": Meaning("Indentation by a tab", hint="indent with spaces"),
    "too-deep": Meaning("Values that are nested too deeply", "Reduce the nesting."),
    "unclosed-reference": Meaning(
        "An unclosed reference", "Close it with }, or write $${ for a literal ${."
    ),
    "unknown-alias": Meaning(
        "An alias without its anchor",
        hint="define the anchor (&name) first, or quote a value that begins with *",
    ),
    "unknown-environment": Meaning(
        "An unknown environment", "Correct the name, or add the environment to reconciler.yaml."
    ),
    "unknown-field": Meaning("An unknown field", "Correct its name or remove it."),
    "unknown-parent": Meaning(
        "An unknown parent", "Declare it, or refer to a live one by id or name."
    ),
    "unknown-reference": Meaning(
        "An unknown reference",
        "Use a reference that the hint lists, or write $${ for a literal ${.",
    ),
    "unknown-tag": Meaning("An unknown YAML tag", hint="remove it; tags are not supported"),
    "unknown-value": Meaning(
        "A value that this version does not know",
        "Check its spelling; the service decides. With --strict, this is an error.",
    ),
    "unknown-variable": Meaning("An unknown variable", "Define it in `vars`, or correct the name."),
    "unknown-zone": Meaning("An unknown time zone", "Use a name such as Europe/Berlin or UTC."),
    "unreadable-file": Meaning("An unreadable file", "Check that it exists and is readable."),
    "unset-environment-variable": Meaning(
        "An environment variable that is not set", "Set it, or add a default: ${env:NAME:-default}."
    ),
    "variable-cycle": Meaning(
        "Variables that refer to each other",
        "Set one of them to a value without a reference to the others.",
    ),
    "wrong-order": Meaning("An end that is not after its start", "Move the end after the start."),
    "wrong-type": Meaning("A value of the wrong type", "Use the type that the message names."),
}


def meaning(code: str) -> Meaning:
    """Return the meaning of a code; for an unknown code, a title from its words."""
    words = code.replace("-", " ")
    return CODES.get(code, Meaning(words[:1].upper() + words[1:]))
