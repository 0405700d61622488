"""What each code of a diagnostic means, for tools that show rules apart from what they found."""

from __future__ import annotations

from collections.abc import Mapping

RULES: Mapping[str, tuple[str, str]] = {
    "absent-parent": (
        "A resource inside a parent that shall be absent",
        "Give it `state: absent` too, or another parent.",
    ),
    "alias-bomb": (
        "Aliases that multiply into too many values",
        "Write the values out, or share fewer of them.",
    ),
    "ambiguous-boolean": (
        "A word that some readers of YAML take for a boolean",
        "Write true or false, or quote the word if it is meant as text.",
    ),
    "ambiguous-number": (
        "A number that readers of YAML understand in different ways",
        "Write it as a decimal number, or quote it if it is meant as text.",
    ),
    "bad-encoding": ("A file that is not UTF-8", "Save the file as UTF-8."),
    "bad-key": (
        "A key that can't be a key",
        "Keys are text; those of resources are letters, digits, - and _. A name may be anything.",
    ),
    "bad-merge": (
        "A merge key that merges no mapping",
        "What follows << is an alias of a mapping, or a list of such aliases.",
    ),
    "bad-rate": ("A rate that is none", "A rate is a number from 0 to 1, two decimals at most."),
    "bad-reference": (
        "A reference that is not well formed",
        "Names of environment variables have letters, digits and _ only.",
    ),
    "bad-timestamp": (
        "A value that is not a moment",
        "Write an ISO 8601 instant with its offset, such as 2026-01-01T00:00:00Z.",
    ),
    "bad-url": (
        "An address that can't be used",
        "base_url is http or https, a host and maybe a port, without user name or password.",
    ),
    "bad-yaml": ("A file that is not YAML", "Mend the syntax at the place that is told."),
    "byte-order-mark": (
        "A byte order mark inside a file",
        "Remove it: nobody sees it. It comes from joining two files.",
    ),
    "clear-text": ("The API key would travel unencrypted", "Use https."),
    "compression-mismatch": (
        "A compression that the file format does not know",
        "Choose a compression that goes with the file format.",
    ),
    "control-character": (
        "A control character in a file",
        "Remove it, or write it as an escape inside double quotes.",
    ),
    "declared-twice": ("A resource that is declared twice", "Give one of them another key."),
    "does-not-apply": (
        "A field that goes with another value of a field beside it",
        "Remove it, or change the field that it depends on.",
    ),
    "duplicate-key": ("A key that stands twice in a mapping", "Remove one, or merge them."),
    "empty-file": ("A file without content", "Fill it or remove it."),
    "exec-not-allowed": (
        "A secret from a command where that is not allowed",
        "Set policy.allow_exec_secrets, or take the secret from the environment or a file.",
    ),
    "feature-flag": (
        "A value that not every organization can use",
        "Make sure that the feature is enabled where this is applied.",
    ),
    "file-too-large": ("A file that is too large", "Split it: there may be any number of files."),
    "literal-secret": (
        "A secret that stands in a file",
        "Write ${secret:env:NAME}, and change the secret if the file was ever shared.",
    ),
    "missing-field": ("A field that is needed and missing", "Set it."),
    "no-effect": (
        "An override for an environment that the resource is not in",
        "Add the environment to its list, or remove the override.",
    ),
    "no-files": ("A pattern of resource files that fits none", "Correct it or remove it."),
    "no-workspace": (
        "A folder without reconciler.yaml",
        "Name the folder of the workspace with -C, or write the file.",
    ),
    "not-a-default": ("A default that resources can't share", "Write it in each resource."),
    "not-a-mapping": (
        "Something else where a mapping is expected",
        "Write a mapping from keys to values.",
    ),
    "not-a-number": ("A number that JSON can't hold", "Write a finite number."),
    "not-allowed": ("A value that is not one of those allowed", "Write one of those allowed."),
    "not-an-override": (
        "A field that can't differ by environment",
        "Write it in the resource itself.",
    ),
    "not-text": (
        "A variable that can't stand inside text",
        "Let the reference be the whole value.",
    ),
    "out-of-range": ("A value outside of its limits", "Write a value within the limits."),
    "outside-workspace": (
        "A path that leads out of the workspace",
        "Keep the files of the workspace below its folder.",
    ),
    "protected-and-absent": (
        "A resource that is protected and shall be absent",
        "Remove `state: absent` or the protection.",
    ),
    "recursive-alias": ("An alias inside of what it stands for", "Write the value out."),
    "reference-in-key": ("A reference in a key", "Keys are told apart as written: write it out."),
    "same-field-twice": ("A field that is set under two of its names", "Keep one of the two."),
    "same-former-name": (
        "Two resources with one former name",
        "Only one of them can be the object of that name.",
    ),
    "similar-name": (
        "Names that differ in case only, where newer servers want more",
        "Give one of them another name.",
    ),
    "same-id": (
        "Two resources pinned to one id",
        "One live object is one resource: remove one of them.",
    ),
    "same-name": (
        "Two resources with one name in one place",
        "Give one another name, or pin both by id.",
    ),
    "secret-in-plain-field": (
        "A secret in a field that is no secret",
        "Whoever may read the object sees it: use ${env:NAME} or ${var:NAME} for what is public.",
    ),
    "several-documents": (
        "More than one YAML document in a file",
        "Put each into a file of its own.",
    ),
    "tab-indent": ("Indentation by a tab", "Indent with spaces."),
    "too-deep": ("Values that are nested too deeply", "Nest them less."),
    "unclosed-reference": (
        "A reference that is not closed",
        "Close it with }, or write $${ for a literal ${.",
    ),
    "unknown-alias": (
        "An alias without its anchor",
        "Define the anchor (&name) above its use (*name).",
    ),
    "unknown-environment": (
        "An environment that the workspace does not have",
        "Correct the name, or add the environment to reconciler.yaml.",
    ),
    "unknown-field": ("A field that is not known here", "Correct its name or remove it."),
    "unknown-parent": (
        "A parent that is not declared",
        "Declare it, or name a live one by id or name.",
    ),
    "unknown-reference": (
        "A reference of an unknown sort",
        "Known are var, env, file and secret; write $${ for a literal ${.",
    ),
    "unknown-tag": ("A YAML tag that is not known", "Remove it."),
    "unknown-value": (
        "A value that this version does not know",
        "Check its spelling; the service decides. With --strict this is an error.",
    ),
    "unknown-variable": ("A variable that is not defined", "Define it in `vars`, or correct it."),
    "unknown-zone": (
        "A time zone that does not exist",
        "Write a name such as Europe/Berlin or UTC.",
    ),
    "unreadable-file": ("A file that can't be read", "Check that it is there and readable."),
    "unset-environment-variable": (
        "An environment variable that is not set",
        "Set it, or give a default: ${env:NAME:-default}.",
    ),
    "variable-cycle": ("Variables that need one another", "Give one of them a value of its own."),
    "wrong-order": ("An end that is not after its start", "Let the end come after the start."),
    "wrong-type": ("A value of the wrong type", "Write a value of the type that is told."),
}


def rule(code: str) -> tuple[str, str]:
    """What the code means, and the way out; the code in words where nothing better is known."""
    words = code.replace("-", " ")
    return RULES.get(code, (words[:1].upper() + words[1:], "The message tells the way out."))
