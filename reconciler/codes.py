"""The codes of diagnostics, declared once: what each means, and its hint.

Tools show a code apart from what was reported (SARIF, docs/reference/diagnostics.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code means.

    `hint` is that of each diagnostic of the code; None where each has a hint of its own, or none.
    `fix` is what to do in general, for a code without a common hint.
    """

    title: str
    fix: str | None = None
    hint: str | None = None

    @property
    def help(self) -> str:
        """What to do, as a sentence."""
        text = self.fix or self.hint or "see the message for the fix"
        return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


CODES: Mapping[str, Meaning] = {
    "absent-parent": Meaning(
        "A resource inside a parent with `state: absent`",
        hint="give it `state: absent` too, or another parent",
    ),
    "alias-bomb": Meaning("Aliases that multiply into too many values", hint="use fewer aliases"),
    "ambiguous-boolean": Meaning(
        "A word that some readers of YAML take for a boolean",
        "Write true or false, or quote the word if it is meant as text.",
    ),
    "ambiguous-number": Meaning(
        "A number that readers of YAML understand in different ways",
        "Write it as a decimal number, or quote it if it is meant as text.",
    ),
    "bad-encoding": Meaning("A file that is not UTF-8", "Save the file as UTF-8."),
    "bad-key": Meaning(
        "A key that can't be a key",
        "Keys are text; those of resources are letters, digits, - and _. A name may be anything.",
    ),
    "bad-merge": Meaning(
        "A merge key without a mapping", hint="write `<<: *name` with the anchor &name on a mapping"
    ),
    "bad-rate": Meaning("Invalid rate", "A rate is a number from 0 to 1, two decimals at most."),
    "bad-reference": Meaning(
        "A reference that is not well formed",
        "Names of environment variables have letters, digits and _ only.",
    ),
    "bad-timestamp": Meaning(
        "A value that is not a moment",
        "Write an ISO 8601 instant with its offset, such as 2026-01-01T00:00:00Z.",
    ),
    "bad-url": Meaning(
        "An address that can't be used",
        "base_url is http or https, a host and maybe a port, without user name or password.",
    ),
    "bad-yaml": Meaning("A file that is not YAML", "Fix the syntax at the reported place."),
    "byte-order-mark": Meaning(
        "A byte order mark inside a file", hint="remove it; it comes from joining two files"
    ),
    "clear-text": Meaning("The API key would travel unencrypted", hint="use https"),
    "compression-mismatch": Meaning(
        "A compression that the file format does not support",
        "Choose a compression that the file format supports.",
    ),
    "control-character": Meaning(
        "A control character in a file",
        hint="remove it, or write it as an escape inside double quotes",
    ),
    "declared-twice": Meaning(
        "A resource that is declared twice", hint="give one of them another key"
    ),
    "does-not-apply": Meaning(
        "A field that requires another value of a field beside it",
        "Remove it, or change the field that it depends on.",
    ),
    "duplicate-key": Meaning(
        "A key that is defined twice in a mapping", hint="remove one of them, or merge them"
    ),
    "empty-file": Meaning("A file without content", "Fill it or remove it."),
    "exec-not-allowed": Meaning(
        "A secret from a command where that is not allowed",
        "Set policy.allow_exec_secrets, or take the secret from the environment or a file.",
    ),
    "feature-flag": Meaning(
        "A value that not every organization can use",
        "Make sure that the feature is enabled where this is applied.",
    ),
    "file-too-large": Meaning(
        "A file that is too large", hint="split it: resources may be in any number of files"
    ),
    "literal-secret": Meaning(
        "A secret that is written in a file",
        "Write ${secret:env:NAME}, and change the secret if the file was ever shared.",
    ),
    "missing-field": Meaning("A required field is missing", "Set it."),
    "no-effect": Meaning(
        "An override for an environment that the resource is not in",
        "Add the environment to its list, or remove the override.",
    ),
    "no-files": Meaning(
        "A pattern of resource files that matches no file", "Correct it or remove it."
    ),
    "no-workspace": Meaning(
        "A folder without reconciler.yaml",
        hint="name its folder with -C, or make one: reconciler init",
    ),
    "not-a-default": Meaning(
        "A default that resources can't share", hint="write it in each resource"
    ),
    "not-a-mapping": Meaning(
        "Something else where a mapping is expected", "Write a mapping from keys to values."
    ),
    "not-a-number": Meaning("A number that JSON can't hold", "Write a finite number."),
    "not-allowed": Meaning(
        "A value that is not one of those allowed", "Write one of those allowed."
    ),
    "not-an-override": Meaning(
        "A field that can't differ by environment", "Write it in the resource itself."
    ),
    "not-text": Meaning(
        "A variable that can't be inside text", "Let the reference be the whole value."
    ),
    "out-of-range": Meaning("A value outside of its limits", "Write a value within the limits."),
    "outside-workspace": Meaning(
        "A path that leads out of the workspace",
        "Keep the files of the workspace below its folder.",
    ),
    "protected-and-absent": Meaning(
        "A protected resource with `state: absent`", hint="remove one of the two"
    ),
    "recursive-alias": Meaning("An alias that contains itself", "Write the value out."),
    "reference-in-key": Meaning(
        "A reference in a key", hint="write the key out; only values are filled in"
    ),
    "same-field-twice": Meaning(
        "A field that is set under two of its names", hint="write one of the two"
    ),
    "same-former-name": Meaning(
        "Two resources with one former name",
        hint="only one of them can be the object of that name: remove one",
    ),
    "same-id": Meaning(
        "Two resources pinned to one id", hint="one live object is one resource: remove one of them"
    ),
    "same-name": Meaning(
        "Two resources with one name in one place",
        hint="give one another name, or pin both by `id`",
    ),
    "secret-in-plain-field": Meaning(
        "A secret in a field that is no secret",
        "Whoever may read the object sees it: use ${env:NAME} or ${var:NAME} for what is public.",
    ),
    "several-documents": Meaning(
        "More than one YAML document in a file", hint="put it into a file of its own"
    ),
    "similar-name": Meaning(
        "Names that differ in case only, which newer servers refuse", hint="give one another name"
    ),
    "tab-indent": Meaning("Indentation by a tab", hint="indent with spaces"),
    "too-deep": Meaning("Values that are nested too deeply", "Nest them less."),
    "unclosed-reference": Meaning(
        "A reference that is not closed", "Close it with }, or write $${ for a literal ${."
    ),
    "unknown-alias": Meaning(
        "An alias without its anchor",
        hint="define the anchor (&name) first, or quote a value that begins with *",
    ),
    "unknown-environment": Meaning(
        "An environment that the workspace does not have",
        "Correct the name, or add the environment to reconciler.yaml.",
    ),
    "unknown-field": Meaning("An unknown field", "Correct its name or remove it."),
    "unknown-parent": Meaning(
        "A parent that is not declared", "Declare it, or name a live one by id or name."
    ),
    "unknown-reference": Meaning(
        "An unknown kind of reference",
        "The hint lists those that exist; write $${ for a literal ${.",
    ),
    "unknown-tag": Meaning("An unknown YAML tag", hint="remove it: only plain YAML is read"),
    "unknown-value": Meaning(
        "A value that this version does not know",
        "Check its spelling; the service decides. With --strict this is an error.",
    ),
    "unknown-variable": Meaning(
        "A variable that is not defined", "Define it in `vars`, or correct it."
    ),
    "unknown-zone": Meaning(
        "A time zone that does not exist", "Write a name such as Europe/Berlin or UTC."
    ),
    "unreadable-file": Meaning(
        "A file that can't be read", "Check that it exists and is readable."
    ),
    "unset-environment-variable": Meaning(
        "An environment variable that is not set",
        "Set it, or give a default: ${env:NAME:-default}.",
    ),
    "variable-cycle": Meaning(
        "Variables that need one another", "Give one of them a value of its own."
    ),
    "wrong-order": Meaning(
        "An end that is not after its start", "Let the end come after the start."
    ),
    "wrong-type": Meaning(
        "A value of the wrong type", "Write a value of the type that the message names."
    ),
}


def meaning(code: str) -> Meaning:
    """Return what a code means; its words where it is not known."""
    words = code.replace("-", " ")
    return CODES.get(code, Meaning(words[:1].upper() + words[1:]))
