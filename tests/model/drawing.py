"""Draw worlds: a history of files, how far it was applied, what happened in the service since.

Situations that were once judged wrongly are drawn often. A world follows from its seed.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from tests.model.declared import KINDS, UNSET, Resource, all_resources, declared, merged, sent_by
from tests.model.world import LOST, Commit, Entry, Files, World, checked_out

Body = dict[str, Any]
ENDS = ("2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", None)
SAME_END = "2027-01-01T02:00:00+02:00"
_KEYS = ("lake", "orders", "raw", "copy", "daily")
_PROJECT_KEYS = ("web", "app", "lab", "new")
NAMES = ("Alpha", "Beta", "Gamma", "Delta", "Ignored", "Omega")
_RESOURCE_FILES = ("a.yaml", "b.yaml")
_SECRET_A, _SECRET_B = (f"${{secret:env:RECONCILER_SECRET_{name}}}" for name in "AB")
_MARK = "<!-- iac:batch-exports:lake iac:hash:abc123 -->"


class _NothingToEditError(Exception):
    """The files have nothing that an edit changes."""


class Drawing:
    """A world in the making. Every resource has a hidden `_uid`: the live object that it became."""

    def __init__(self, seed: int, dialect: str) -> None:
        self.dice = random.Random(f"{seed} {dialect}")  # noqa: S311
        self.dialect = dialect
        self.count = 0
        self.log: list[str] = []
        self.is_quiet = self.chance(0.2)
        self.files: Files = self._first_files()
        for _ in range(self.dice.randint(1, 5)):
            self.attempt(self.add_export)
        self.live: dict[str, Body] = {}
        """Live objects by uid, exports with the uid of their project."""
        self.entries: dict[str, Entry] = {}

    def number(self) -> int:
        self.count += 1
        return self.count

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    # Files

    def _first_files(self) -> Files:
        dice = self.dice
        top: Body = {"version": 1, "environments": {"one": {}}, "policy": self._policy()}
        top["vars"] = {"every": "day", "end": ENDS[0]}
        if self.chance(0.6):
            top["environments"]["two"] = {"vars": {"every": dice.choice(("hour", "day"))}}
        if self.chance(0.4):
            top["defaults"] = {"batch_export": {"end_at": ENDS[0]}}
        files: Files = {"reconciler.yaml": top, **_empty_files()}
        for key in ("web", "app", "lab")[: dice.choice((1, 2, 2, 3))]:
            files[dice.choice(_RESOURCE_FILES)]["projects"][key] = self.project(key)
        return files

    def _policy(self) -> Body:
        if self.is_quiet:
            return {"prune": True, "allow_project_deletion": True}
        return {
            key: self.dice.choice(values)
            for key, (share, values) in _POLICIES.items()
            if self.chance(share)
        }

    def project(self, key: str) -> Body:
        body: Body = {"_uid": f"p{self.number()}", "name": key.title()}
        if self.chance(0.5):
            body["timezone"] = self.dice.choice(("UTC", "Europe/Berlin"))
        return body

    def destination(self, key: str) -> Body:
        dice = self.dice
        kind = dice.choice(("place", "place", "place", "HTTP", "NoOp", "table"))
        kind = "NoOp" if self.is_quiet and self.chance(0.6) else kind
        if kind == "NoOp":
            return {"type": "NoOp", "config": {"arg": key}}
        if kind == "HTTP":
            token = {"token": _SECRET_A} if self.chance(0.75) else {}
            return {"type": "HTTP", "config": {"url": "https://eu.i.posthog.com/batch/", **token}}
        prefix = dice.choice((key, key, "shared"))
        config = {"bucket_name": "acme", "region": "eu", "prefix": prefix}
        if self.dialect == "2026":
            return {"type": "AwsS3", "config": config, "integration": "$project"}
        if kind == "place":
            own = {"aws_access_key_id": _SECRET_A, "aws_secret_access_key": _SECRET_B}
            return {"type": "S3", "config": {**config, **own}}
        config = {"host": "db.example", "database": "d", "schema": "public", "table_name": prefix}
        own = {"user": _SECRET_A, "password": _SECRET_B}
        return {"type": "Postgres", "config": {**config, **own}}

    def items(self, kind: str, files: Files | None = None) -> list[tuple[str, str, Body]]:
        """Return file, key and value of every resource of a kind."""
        files = self.files if files is None else files
        return [
            (name, key, value)
            for name in sorted(files)
            for key, value in files[name].get(KINDS[kind], {}).items()
        ]

    def free_key(self, kind: str, keys: Sequence[str] = _KEYS) -> str:
        taken = {key for _, key, _ in self.items(kind)}
        free = [key for key in keys if key not in taken]
        return self.dice.choice(free) if free else f"k{self.number()}"

    def free_name(self) -> str:
        return self.dice.choice(NAMES)

    def attempt(self, edit: Callable[[], None]) -> bool:
        """Make an edit, unless the files would be invalid then."""
        before = copy.deepcopy(self.files)
        with suppress(_NothingToEditError):
            edit()
            if valid(self.files):
                return True
        self.files = before
        return False

    def edit(self, name: str = "") -> bool:
        """Make a random edit, or the named one; return whether the files allow it."""
        weights = QUIET_EDITS if self.is_quiet else EDITS
        name = name or self.dice.choices([*weights], [*weights.values()])[0]
        is_made = self.attempt(
            partial(self._patch, name) if name in PATCHES else getattr(self, name)
        )
        if is_made:
            self.log.append(name)
        return is_made

    def _some(self, kind: str, count: int) -> list[tuple[str, str, Body]]:
        items = self.items(kind)
        if len(items) < count:
            raise _NothingToEditError
        return self.dice.sample(items, count)

    def _one(self, kind: str = "batch_export") -> tuple[str, str, Body]:
        return self._some(kind, 1)[0]

    def _patch(self, name: str) -> None:
        kind, patches = PATCHES[name]
        _merge(self._one(kind)[2], self.dice.choice(patches))

    def add_export(self) -> None:
        key = self.free_key("batch_export")
        body: Body = {
            "_uid": f"e{self.number()}",
            "name": self.free_name(),
            "project": self._one("project")[1],
            "interval": self.dice.choice(("hour", "day")),
            "destination": self.destination(key),
        }
        for field, values in _OPTIONAL.items():
            if self.chance(0.25):
                body[field] = self.dice.choice(values)
        if self.chance(0.15):
            body["lifecycle"] = {"protect": True}
        self.files[self.dice.choice(_RESOURCE_FILES)]["batch_exports"][key] = body

    def _add_other(self, of: tuple[str, str, Body], **fields: Any) -> None:
        file, _, old = of
        body = {**copy.deepcopy(old), "_uid": f"e{self.number()}", **fields}
        body.pop("id", None)
        self.files[file]["batch_exports"][self.free_key("batch_export")] = body

    def add_twin(self) -> None:
        self._add_other(self._one(), name=self.free_name())

    def recreate(self) -> None:
        """Remove an export, and declare another one of its name, perhaps in another project."""
        old, project = self._one(), self._one("project")[1]
        to = self.destination(self.dice.choice(_KEYS))
        self._add_other(old, project=project, destination=to)
        del self.files[old[0]]["batch_exports"][old[1]]

    def add_project(self) -> None:
        """Add a project, perhaps with a name that differs from another one only in case."""
        key = self.free_key("project", _PROJECT_KEYS)
        body = self.project(key)
        if self.chance(0.5):
            body["name"] = self.dice.choice(("web", "APP", "lab", "wEB"))
        self.files["a.yaml"]["projects"][key] = body
        if self.chance(0.6):
            twin = {**body, "_uid": f"p{self.number()}", "name": body["name"].swapcase()}
            self.files["b.yaml"]["projects"][f"{key}2"] = twin

    def rename(self) -> None:
        _, _, own = self._one()
        if self.chance(0.25):
            _merge(own, {"lifecycle": {"renamed_from": [own["name"]]}})
        own["name"] = self.free_name()

    def change_integration(self) -> None:
        """Name the integration of any project, perhaps of another one."""
        destination = self._one()[2]["destination"]
        if "integration" in destination:
            destination["integration"] = 101 + self.dice.randrange(3)

    def rekey(self) -> None:
        """Change the key, and perhaps a field or the name in the same commit."""
        _, key, own = self._one()
        self._rekey("batch_export", key, self.free_key("batch_export"))
        if self.chance(0.2):
            own["name"] = self.free_name()
        elif self.chance(0.6):
            self.change_field(own)

    def rekey_project(self) -> None:
        key = self._one("project")[1]
        self._rekey("project", key, self.free_key("project", _PROJECT_KEYS))

    def _rekey(self, kind: str, old: str, new: str) -> None:
        """Change a key and the references to it, as `mv` does."""
        for file, _, _ in self.items(kind):
            own = self.files[file][KINDS[kind]]
            self.files[file][KINDS[kind]] = {new if key == old else key: own[key] for key in own}
        for _, _, body in self.items("batch_export") if kind == "project" else ():
            if body["project"] == old:
                body["project"] = new

    def swap_names(self) -> None:
        kind = self.dice.choice(("batch_export",) * 4 + ("project",))
        (_, _, one), (_, _, two) = self._some(kind, 2)
        one["name"], two["name"] = two["name"], one["name"]

    def swap_keys(self) -> None:
        """Exchange two keys. The exports of a project stay in it, or are in the other one then."""
        kind = self.dice.choice(("project", "batch_export"))
        (_, one, _), (_, two, _) = self._some(kind, 2)
        parents = {key: body["project"] for _, key, body in self.items("batch_export")}
        for old, new in ((one, "swapping"), (two, one), ("swapping", two)):
            self._rekey(kind, old, new)
        if kind == "project" and self.chance(0.3):
            for _, key, body in self.items("batch_export"):
                body["project"] = parents[key]

    def move(self) -> None:
        """Name any project by its key, live name or id."""
        _, key, project = self._one("project")
        names: list[Any] = [key] * 4
        names += [{"name": project["name"]}, {"id": _id_of(project["_uid"])}]
        self._one()[2]["project"] = self.dice.choice(names)

    def remove(self) -> None:
        """Remove an export, or a project with the exports in it."""
        kind = self.dice.choice(("batch_export", "batch_export", "project"))
        file, key, _ = self._one(kind)
        del self.files[file][KINDS[kind]][key]
        if kind == "project":
            self._empty(key)

    def remove_all(self) -> None:
        self.files.update(_empty_files())

    def absent_project(self) -> None:
        """Delete a project by `state: absent`, with the exports in it or without them."""
        _, key, own = self._one("project")
        own["state"] = "absent"
        if self.chance(0.6):
            self._empty(key)

    def _empty(self, project: str) -> None:
        """Remove the exports that refer to a project by its key."""
        for file, key, body in self.items("batch_export"):
            if body["project"] == project:
                del self.files[file]["batch_exports"][key]

    def change_field(self, body: Body | None = None) -> None:
        body = body or self._one()[2]
        if self.chance(0.65):
            _merge(body, self.dice.choice(_FIELDS))
        else:
            to, config = self.dice.choice(("one", "two", "shared")), body["destination"]["config"]
            config.update(dict.fromkeys({"prefix", "table_name", "arg"} & config.keys(), to))

    def change_type(self) -> None:
        self._one()[2]["destination"] = self.destination(self.dice.choice(_KEYS))

    def drop_fields(self) -> None:
        """Remove optional fields of all resources, or leave them to the service."""
        for kind, field in _DROPPED:
            for _, _, own in self.items(kind):
                body = own["destination"]["config"] if field == "exclude_events" else own
                if self.chance(0.5):
                    body.pop(field, None)
                elif self.chance(0.3):
                    body[field] = UNSET

    def change_defaults(self) -> None:
        """Let the workspace or a file have other defaults, or none."""
        name = self.dice.choice(sorted(self.files))
        export = merged(self.dice.choice(_DEFAULTS), self.dice.choice(_DEFAULTS))
        own = {"batch_export": export, "project": self.dice.choice(_OF_PROJECTS)}
        self.files[name]["defaults"] = copy.deepcopy(own) if self.chance(0.8) else {}

    def pin(self) -> None:
        (_, _, own), (_, _, other) = self._one(), self._one()
        own["id"] = str(_id_of((other if self.chance(0.2) else own)["_uid"]))

    def rotate_secret(self) -> None:
        _, _, own = self._one()
        config = own["destination"]["config"]
        names = [name for name in config if str(config[name]).startswith("${secret:")]
        if names and self.chance(0.5):
            config[names[0]] = "${secret:env:RECONCILER_SECRET_C}"
        else:
            own["secret_version"] = str(self.number())

    def narrow(self) -> None:
        """Load only some of the files."""
        names = self.dice.choice((["a.yaml"], ["a.yaml", "b.yaml"]))
        self.files["reconciler.yaml"]["resources"] = names

    def ignore(self) -> None:
        """Ignore an object and rename its resource out of the glob, in one commit."""
        _, _, own = self._one()
        self.files["reconciler.yaml"]["policy"]["ignore"] = [own["name"][:3] + "*"]
        if self.chance(0.7):
            own["name"] = self.free_name()

    def change_policy(self) -> None:
        self.files["reconciler.yaml"]["policy"] = self._policy()

    # Live state

    def _resources(self, files: Files) -> Iterator[tuple[Body, Resource]]:
        """Yield what these files declare to exist."""
        bodies = declared(clean(files), "one")
        for kind in KINDS:
            for _, key, body in self.items(kind, files):
                resource = bodies.get(f"{kind}.{key}")
                if resource is not None and not resource.absent:
                    yield body, resource

    def apply(self, commits: Sequence[Commit], number: int, *, deletes: bool = True) -> None:
        """Let live state and entries be what the files of a commit declare, by uid."""
        files = commits[number].files
        self.live = {**({} if deletes else self.live), **self._declared(files)}
        for body, own in self._resources(files):
            uid = body["_uid"]
            if uid in self.live:
                parent, identity = self.live[uid].get("_parent"), str(_id_of(uid))
                above, known = parent and str(_id_of(parent)), self.entries.items()
                self.entries = {key: item for key, item in known if item.id != identity}
                self.entries[own.address] = Entry(identity, own.name, above, number, sent_by(own))

    def _declared(self, files: Files) -> dict[str, Body]:
        now: dict[str, Body] = {}
        for body, resource in self._resources(files):
            fields: Body = {}
            for path, value in resource.values.items():
                _put(fields, path, value)
            if "project" in body:
                fields["_parent"] = _project_of(body["project"], files)
            if fields.get("_parent", "") is not None:
                now[body["_uid"]] = fields
        return now

    def cut_short(self, commits: list[Commit]) -> None:
        """Let an export have a new object in another project beside the applied one.

        It was protected when it was applied, is protected now, or neither.
        """
        for _ in range(3):
            live, now = self.live, self._declared(self.files)
            both = live.keys() & now.keys()
            moved = sorted(x for x in both if now[x].get("_parent") != live[x].get("_parent"))
            if moved:
                break
            self.attempt(self.move)
        else:
            return
        self.log.append("live: a move was cut short")
        uid = self.dice.choice(moved)
        for _ in range(1 if self.chance(0.9) else 2):
            self.live[f"e{self.number()}"] = copy.deepcopy(now[uid])
        was, is_now = self.chance(0.6), self.chance(0.3)
        for files in (*(x.files for x in commits if was), *([self.files] if is_now else [])):
            for _, _, body in self.items("batch_export", files):
                if body["_uid"] == uid and "state" not in body:
                    _merge(body, {"lifecycle": {"protect": True}})

    def forget(self) -> None:
        """Let an export have two former names, of which one or both are live."""
        former = ["First", "Second"]
        applied = [body for _, _, body in self.items("batch_export") if body["_uid"] in self.live]
        if applied:
            own = self.dice.choice(applied)
            patch = {"name": "Third", "lifecycle": {"renamed_from": former}}
            if self.attempt(partial(_merge, own, patch)):
                body = self.live.pop(own["_uid"])
                for name in self.dice.choice((former, former, former[:1])):
                    self.live[f"e{self.number()}"] = {**copy.deepcopy(body), "name": name}

    def _exports(self) -> list[str]:
        return [uid for uid, body in self.live.items() if "_parent" in body]

    def _projects(self) -> list[str]:
        return [uid for uid, body in self.live.items() if "_parent" not in body]

    def happen(self) -> None:
        dice = self.dice
        exports, projects = self._exports(), self._projects()
        what = dice.choice(HAPPENINGS)
        self.log.append(f"live: {what}")
        if what == "project" or not projects:
            self.live[f"p{self.number()}"] = {"name": dice.choice(("Other", "New", "web", "Lab"))}
        elif what == "rename project":
            self.live[dice.choice(projects)]["name"] = dice.choice(("Renamed", "App", "Lab"))
        elif what == "delete project":
            gone, live = dice.choice(projects), self.live.items()
            self.live = {uid: x for uid, x in live if gone not in (uid, x.get("_parent"))}
        elif what == "change project":
            self.live[dice.choice(projects)]["timezone"] = "Europe/Paris"
        elif what == "unmanaged" or not exports:
            uid = f"e{self.number()}"
            body: Body = {"name": self.free_name(), "_parent": dice.choice(projects)}
            self.live[uid] = body | {"interval": "hour", "destination": self.destination(uid)}
        else:
            self._happen_to(what, dice.choice(exports), projects)

    def _happen_to(self, what: str, uid: str, projects: list[str]) -> None:
        dice, body = self.dice, self.live[uid]
        name, other = body["name"], self.free_name()
        passed = ("2026-05-01T00:00:00Z", "2026-05-30T00:00:00Z")
        copies: dict[str, Body] = {
            "duplicate": {},
            "twin": {"name": other},
            "copy elsewhere": {"_parent": dice.choice(projects)},
        }
        changes: dict[str, Body] = {
            "rename": {"name": dice.choice((f"{name} (do not touch)", other))},
            "spaces": {"name": f" {name} "},
            "marker": {"name": f"{name} {_MARK}"},
            "pause": {"paused": not body.get("paused", False)},
            "end": {"end_at": dice.choice((*passed, SAME_END, *ENDS))},
        }
        if what == "delete":
            del self.live[uid]
        elif what in copies:
            self.live[f"e{self.number()}"] = {**copy.deepcopy(body), **copies[what]}
        elif what in changes:
            body.update(changes[what])
        else:
            self.change_field(body)

    def seeded(self) -> list[Body]:
        """Return the live projects as the service is planted with them."""
        found = []
        for uid in self._projects():
            body = {"id": _id_of(uid), "anonymize_ips": False, **self.live[uid]}
            body["batch_exports"] = [
                _planted({"id": _id_of(child), **own}, int(body["id"]))
                for child in self._exports()
                if (own := dict(self.live[child])).pop("_parent") == uid
            ]
            found.append(body)
        return found


def _weights(*lines: str) -> dict[str, float]:
    pairs = (pair.split() for line in lines for pair in line.split(", "))
    return {name: float(weight) for name, weight in pairs}


_POLICIES: Mapping[str, tuple[float, Sequence[Any]]] = {
    "prune": (0.75, (True,)),
    "allow_project_deletion": (0.6, (True,)),
    "max_deletes": (0.08, (0, 1, "34%", "50%")),
    "max_changes": (0.04, (0, 2)),
    "deny": (0.06, (["history-lost"], ["project-data-lost"])),
    "ignore": (0.2, (["Ign*"], ["Alpha"], ["Beta"], ["Web*"])),
}
_OPTIONAL = {"end_at": ENDS, "paused": (True, True, False), "model": ("events", "persons", None)}
_EXCLUDED = [
    {"destination": {"config": {"exclude_events": names}}} for names in (["a", "b"], ["c"])
]
_FIELDS: Sequence[Body] = (
    *({"interval": interval} for interval in ("hour", "day", "hour", "day")),
    *({"end_at": end} for end in (*ENDS, SAME_END)),
    *_EXCLUDED,
    *({"paused": True}, {"paused": False}, {"model": "events"}, {"model": "persons"}),
    {"model": None},
)
_OF_PROJECTS: Sequence[Body] = (
    *({"timezone": zone} for zone in ("UTC", "Europe/Berlin")),
    *({name: value} for name in ("anonymize_ips", "surveys_opt_in") for value in (True, False)),
)
_DEFAULTS: Sequence[Body] = (
    *({"end_at": ENDS[1]}, {"end_at": None}, {"paused": True}, {"model": "persons"}),
    *({"secret_version": "2"}, {"lifecycle": {"protect": True}}, _EXCLUDED[0]),
    {"lifecycle": {"ignore_changes": ["interval"]}},
    {"destination": {"type": "NoOp", "config": {"arg": "default", "exclude_events": ["c"]}}},
)
_DROPPED = (
    *(("batch_export", field) for field in ("end_at", "paused", "model", "exclude_events")),
    *(("project", field) for field in ("timezone", "anonymize_ips", "surveys_opt_in")),
)
_PROTECTS = [{"lifecycle": {"protect": protects}} for protects in (True, True, False)]
_LAYERS: Sequence[Body] = ({"interval": "day"}, {"end_at": ENDS[1]}, {"end_at": UNSET})
PATCHES: Mapping[str, tuple[str, Sequence[Body]]] = {
    "absent": ("batch_export", ({"state": "absent"},)),
    "change_project": ("project", _OF_PROJECTS),
    "rename_project": ("project", [{"name": x} for x in ("Web", "App", "Lab", "APP", "web")]),
    "protect": ("batch_export", _PROTECTS),
    "protect_project": ("project", _PROTECTS),
    "loosen": (
        "batch_export",
        (
            {"lifecycle": {"ignore_changes": ["destination"]}},
            {"lifecycle": {"ignore_changes": ["end_at", "interval"]}},
            {"lifecycle": {"allow_replace": True}},
            *({"lifecycle": {x: [y]}} for x in ("beside", "renamed_from") for y in NAMES[:2]),
        ),
    ),
    "limit": ("batch_export", [{"environments": x} for x in (["two"], ["one"], ["one", "two"])]),
    "override": (
        "batch_export",
        (
            *({"overrides": {"one": layer}} for layer in (*_LAYERS, {"paused": True})),
            *({"overrides": {"one": layer, "two": layer}} for layer in _LAYERS),
            *({"overrides": {"one": x, "two": {"interval": "week"}}} for x in _LAYERS),
            {"overrides": {"two": {"interval": "week"}}},
        ),
    ),
    "vary": ("batch_export", ({"interval": "${var:every}"}, {"end_at": "${var:end}"})),
}
"""The edits that merge one of some values into a resource of a kind."""
EDITS = _weights(
    "add_export 3, add_twin 2, add_project 2, rename 4, rename_project 2, rekey 9",
    "rekey_project 1.5, swap_names 2.5, swap_keys 2",
    "change_integration 0.5, move 3, remove 9",
    "remove_all 1, recreate 2, absent 1.5, absent_project 1.5, change_field 6",
    "change_type 1.5, drop_fields 4, change_defaults 5, change_project 2",
    "protect 3, protect_project 1, loosen 3, limit 2, override 2, vary 2, pin 1.5",
    "rotate_secret 3, narrow 2, ignore 4, change_policy 1",
)
QUIET_EDITS = _weights("add_project 2, remove 3, add_export 1, change_field 1, change_project 1")
"""Edits of worlds in which nothing happens in the service."""
HAPPENINGS = (
    *("rename", "rename", "rename", "rename project", "rename project", "delete"),
    *("duplicate", "duplicate", "twin", "copy elsewhere", "change", "change", "pause", "end"),
    *("unmanaged", "unmanaged", "project", "marker", "delete project", "change project"),
    "spaces",
)


def _id_of(uid: str) -> Any:
    number = int(uid[1:])
    return number if uid[0] == "p" else f"00000000-0000-0000-0000-{number:012}"


def _merge(body: Body, patch: Body) -> None:
    body.update(merged(body, copy.deepcopy(patch)))


def _empty_files() -> Files:
    return {name: {"projects": {}, "batch_exports": {}} for name in _RESOURCE_FILES}


def _put(body: Body, path: str, value: Any) -> None:
    *above, last = path.split(".")
    for part in above:
        body = body.setdefault(part, {})
    body[last] = value


def _planted(value: Any, project: int) -> Any:
    """Return a live export: secrets have values, and integrations are those of its project."""
    if not isinstance(value, dict):
        return "old-secret" if str(value).startswith("${secret:") else value
    planted = {
        key: _planted(item, project)
        for key, item in value.items()
        if item is not None or key not in ("model", "end_at")
    }
    if "integration" in value:
        planted["integration"] = 100 + project
    if value.get("type") == "HTTP":
        planted["config"].setdefault("token", "old-secret")
    if value.get("destination", {}).get("type") == "HTTP":
        planted.pop("model", None)
    return planted


def clean(files: Files) -> Files:
    """Return files without the hidden ids, and with the integration of each project."""
    files = copy.deepcopy(files)
    for _, _, body in all_resources(files):
        if body.get("destination", {}).get("integration") == "$project":
            uid = _project_of(body["project"], files)
            body["destination"]["integration"] = 100 + (int(uid[1:]) if uid else 1)
    for _, _, body in all_resources(files):
        body.pop("_uid", None)
    return files


def _project_of(parent: Any, files: Files) -> str | None:
    """Return the uid of the project that is named by key, live name or id."""
    how, text = ("key", parent) if isinstance(parent, str) else next(iter(parent.items()))
    for value in files.values():
        for key, body in value.get("projects", {}).items():
            uid = str(body["_uid"])
            if text == {"key": key, "name": body["name"], "id": _id_of(uid)}[how]:
                return uid
    return None


def valid(files: Files) -> bool:
    """Return whether the files are valid in all environments, as `validate` checks them."""
    environments = files["reconciler.yaml"]["environments"]
    for name in environments:
        resources = declared(clean(files), name)
        keys = {("name", item.name): ("key", key) for key, item in resources.items()}
        places = []
        for item in resources.values():
            of_key = item.parent[1] if item.parent and item.parent[0] == "key" else None
            above = resources.get(of_key) if of_key else None
            is_lost = above.absent and not item.absent if above else of_key is not None
            if is_lost or (item.absent and item.protected):
                return False
            if item.value("destination.type") == "HTTP" and item.value("model") != "events":
                return False
            parent = item.parent and keys.get(item.parent, item.parent)
            places.append((item.kind, parent, item.name))
        known = resources.values()
        former = [(item.kind, item.parent, name) for item in known for name in {*item.names[1:]}]
        pins = [(item.kind, item.pinned) for item in known if item.pinned]
        if any(len(set(each)) < len(each) for each in (former, places, pins)):
            return False
    for _, _, body in all_resources(files):
        if not {*body.get("overrides", ()), *body.get("environments", ())} <= {*environments}:
            return False
    addresses = [address for _, address, _ in all_resources(files)]
    is_declared_twice = len(set(addresses)) < len(addresses)
    return not is_declared_twice and {*files["reconciler.yaml"].get("resources", ())} <= {*files}


def drawn(seed: int, dialect: str) -> World:
    drawing = Drawing(seed, dialect)
    dice = drawing.dice
    commits = [Commit(copy.deepcopy(drawing.files))]
    for _ in range(dice.choice((0, 1, 1, 2))):
        _committed(drawing, commits)
    world = _shaped(drawing, commits)
    _live(drawing, world, commits)
    world.commits = [Commit(clean(item.files), item.parents) for item in commits]
    world.work = clean(world.work)
    if drawing.chance(0.4) and drawing.edit():
        world.later = clean(drawing.files)
    world.log = drawing.log
    _options(drawing, world)
    return world


def _committed(drawing: Drawing, commits: list[Commit], *parents: int) -> int:
    for _ in range(drawing.dice.choice((1, 1, 2))):
        drawing.edit()
    drawing.log.append("commit")
    commits.append(Commit(copy.deepcopy(drawing.files), parents or (len(commits) - 1,)))
    return len(commits) - 1


def _shaped(drawing: Drawing, commits: list[Commit]) -> World:
    """Return a world whose clone has one of the usual shapes."""
    dice, fork = drawing.dice, len(commits) - 1
    world = World(0, drawing.dialect, [], commits, fork, {})
    shape = dice.choice(("feature", "feature", "main", "main", "moved", "moved", "job"))
    drawing.log.append(f"shape: {shape}")
    if shape in ("feature", "moved"):
        world.default, world.branch = fork, "feature"
        head = _committed(drawing, commits, fork)
        if drawing.chance(0.5):
            head = _committed(drawing, commits, head)
        if shape == "moved":
            world.default = _main_moves(drawing, commits, fork, head)
            head = len(commits) - 1 if drawing.chance(0.4) else head
        world.head = head
    elif shape == "job" or drawing.chance(0.5):
        world.default = fork
    world.job = shape == "job" or (world.default is not None and drawing.chance(0.1))
    drawing.files = copy.deepcopy(commits[world.head].files)
    if drawing.chance(0.3 if world.default is not None else 0.6):
        drawing.log.append("uncommitted:")
        for _ in range(dice.choice((1, 2))):
            drawing.edit()
    return world


def _main_moves(drawing: Drawing, commits: list[Commit], fork: int, head: int) -> int:
    """Commit an edit on main, and merge main into the feature branch; return the tip of main."""
    feature = drawing.files
    drawing.files = copy.deepcopy(commits[fork].files)
    drawing.edit("add_export" if drawing.chance(0.5) else "")
    commits.append(Commit(copy.deepcopy(drawing.files), (fork,)))
    both = copy.deepcopy(_merged_by_git(commits[fork].files, feature, drawing.files))
    drawing.files = both if valid(both) else feature
    commits.append(Commit(copy.deepcopy(drawing.files), (head, len(commits) - 1)))
    drawing.log.append("merged main")
    return len(commits) - 2


def _merged_by_git(base: Body, ours: Body, theirs: Body) -> Body:
    """Return merged values. What both sides changed or added is as in ours."""
    result: Body = {}
    for key in {**ours, **theirs}:
        old, own, other = base.get(key), ours.get(key), theirs.get(key)
        if isinstance(old, dict) and isinstance(own, dict) and isinstance(other, dict):
            result[key] = _merged_by_git(old, own, other)
        elif (kept := other if own == old else own) is not None:
            result[key] = kept
    return result


def _live(drawing: Drawing, world: World, commits: list[Commit]) -> None:
    """Let an earlier commit be applied, perhaps a later one in part, and something happen."""
    dice = drawing.dice
    line = sorted(world.ancestors(world.head))
    first = dice.choice(line[:-1] or line) if drawing.chance(0.7) else line[-1]
    if world.default is not None and drawing.chance(0.3):
        first = world.default
    if drawing.is_quiet:
        first = line[-2:][0]
    drawing.apply(commits, first)
    world.newest = first
    later = [number for number in range(len(commits)) if number > first]
    if later and drawing.chance(0.8 if len(line) < len(commits) else 0.3):
        drawing.log.append("applied in part")
        world.newest = dice.choice(later)
        drawing.apply(commits, world.newest, deletes=drawing.chance(0.5))
    for _ in range(0 if drawing.is_quiet else dice.choice((0, 0, 1, 1, 2, 3))):
        drawing.happen()
    if not drawing.is_quiet and drawing.chance(0.4):
        drawing.cut_short(commits)
    elif not drawing.is_quiet and drawing.chance(0.06):
        drawing.forget()
    elif not drawing.is_quiet and drawing.chance(0.6):
        drawing.edit(dice.choice(("drop_fields", "ignore", "rekey")))
    world.work = copy.deepcopy(drawing.files)
    world.projects = drawing.seeded()
    # Only `ignore` may explain why an object is not found.
    if drawing.chance(0.5 if "ignore" in drawing.log else 0.92):
        world.record = dict(drawing.entries)
        for _ in range(0 if drawing.is_quiet else dice.choice((0, 0, 0, 1, 1, 2))):
            _forge(drawing, world)
    world.rollback = drawing.chance(0.3)


def _forge(drawing: Drawing, world: World) -> None:
    """Change an entry, as a clone without history, an attacker or an old run would leave it."""
    dice, record = drawing.dice, world.record
    if not record:
        return
    now = declared(checked_out(world), world.environment)
    removed = sorted(record.keys() - now.keys()) if drawing.chance(0.8) else []
    key = dice.choice(removed or sorted(record))
    entry, other = record[key], record[dice.choice(sorted(record))]
    live = [str(_id_of(uid)) for uid in drawing.live if (uid[0] == "p") == (key[0] == "p")]
    free = sorted({*live} - {item.id for item in record.values()})
    changes: dict[str, Body] = {
        "none": {"commit": None},
        "lost": {"commit": LOST},
        "commit": {"commit": dice.randrange(len(world.commits))},
        "id": {"id": dice.choice(free or [entry.id])},
        "name": {"name": other.name},
        "sent": {"sent": None},
    }
    what = dice.choice(("lost", "commit", "drop", *changes))
    drawing.log.append(f"entry {key}: {what}")
    if what == "drop":
        del record[key]
    else:
        record[key] = replace(entry, **changes[what])


def _options(drawing: Drawing, world: World) -> None:
    dice = drawing.dice
    is_cut_short = "live: a move was cut short" in drawing.log
    world.allow_replace = drawing.is_quiet or drawing.chance(0.5 if is_cut_short else 0.7)
    if drawing.is_quiet:
        return
    world.no_inventory = drawing.chance(0.05)
    resources = declared(world.work, "one")
    exports = [body for project in world.projects for body in project["batch_exports"]]
    own = [str(body[what]) for body in world.projects for what in ("name", "id")]
    known = [*own, *(str(body[what]).strip() for body in exports for what in ("name", "id"))]
    for address, item in resources.items():
        known += [address, address, address.partition(".")[2], item.name]
    known += ["*", "l*", "*a", "batch_export.*", "A*", "[op]*", "*.web", "none", "*-0000000000*"]
    chosen = tuple(dice.sample(known, dice.choice((1, 1, 2))))
    if drawing.chance(0.12):
        world.targets, world.excludes = (chosen, ()) if drawing.chance(0.5) else ((), chosen)
    elif drawing.chance(0.05):
        world.parents = (dice.choice((*own, "web", "app", "lab", "*", "a*", "W*")),)
    elif drawing.chance(0.04):
        world.kinds = (dice.choice(("project", "batch_export", "batch_exports", "b*")),)
    secret = [address for address, item in resources.items() if item.secrets]
    if secret and drawing.chance(0.06):
        world.rotate = ("*",) if drawing.chance(0.5) else (dice.choice(sorted(secret)),)
    names = [name for name in world.commits[world.head].files if name != "reconciler.yaml"]
    if drawing.chance(0.1):
        world.sparse = (dice.choice(names),)
        later = replace(world, work=world.later or world.work)
        if not (valid(checked_out(world)) and valid(checked_out(later))):
            world.sparse = ()
