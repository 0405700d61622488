"""Questions of users, each with the heading that answers it."""

QUESTIONS = {
    "repair ten exports at once": "operations.md#repair-many-exports-at-once",
    "silence a warning": "troubleshooting.md#silence-a-warning",
    "a multi-line key in a variable": "configuration.md#a-multi-line-key-in-a-variable",
    "practise operations": "on-call.md#practise-operations",
    "restore from a backup": "undo.md#restore-from-a-backup",
    "two organizations": "environments.md#two-organizations",
    "leave the tool again": "undo.md#leave-the-tool-again",
    "a renamed export in the service": "troubleshooting.md#an-export-was-renamed-in-the-service",
    "rotate a secret": "security.md#rotate-a-key-or-a-secret",
    "what does exit code 4 mean": "troubleshooting.md#exit-code-4",
    "delete a project": "planning.md#deletion-of-a-project",
    "who changed this": "operations.md#who-changed-it",
    "why is my export not in the plan": "troubleshooting.md#an-export-is-not-in-the-plan",
    "a fork's pull request": "security.md#pull-requests-from-forks",
    "the tool is too slow": "troubleshooting.md#the-tool-is-slow",
    "a new project with integrations": "configuration.md#a-new-project-with-integrations",
    "rotate an integration": "security.md#rotate-an-integration",
    "an export was deleted in the web interface": (
        "troubleshooting.md#an-export-was-deleted-in-the-web-interface"
    ),
    "which environment variables": "configuration.md#environment-variables",
    "commit the .reconciler folder": "output.md#do-i-commit-reconciler",
    "compare two environments": "environments.md#compare",
    "move from terraform": "other-tools.md#move-from-terraform",
    "behind a proxy": "security.md#proxy-and-certificates",
    "the rate limit": "reliability.md#rate-limits",
    "keep live values": "operations.md#keep-live-values",
}
"""By the words that a user types: page and anchor below docs/."""
