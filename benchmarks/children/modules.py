"""Print the modules that a command imports, as a JSON list on the last line of stderr.

Run: python modules.py WORD…, with the words of the command. The modules are those of reconciler,
and the packages that are neither reconciler nor part of Python. Exits as the command does.
"""

import json
import sys

IGNORED = ("_sysconfigdata", "_cython", "cython_runtime", "typing_extensions", "rich", "pygments")
"""Modules that depend on the platform, on the build of a package, on the version of Python, or on
what else is installed: httpx imports rich."""

before = set(sys.modules)
sys.path.insert(0, "")
sys.argv[0] = "reconciler"

from reconciler.commands import main  # noqa: E402

try:
    main()
finally:
    names = set()
    for module in set(sys.modules) - before:
        package = module.partition(".")[0]
        if package == "reconciler":
            names.add(module)
        elif package not in sys.stdlib_module_names and not package.startswith(IGNORED):
            names.add(package)
    print(json.dumps(sorted(names)), file=sys.stderr)
