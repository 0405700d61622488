"""Draw worlds: a history of files, how far it was applied, what happened in the service since.

Situations that were once judged wrongly are drawn often. A world follows from its seed.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tests.model.declared import KINDS, TYPE, UNSET, all_resources, declared, merged, sent_by
from tests.model.world import LOST, Commit, Entry, Files, World, checked_out

Edit = Callable[[Files], None]
Body = dict[str, Any]
ENDS = ("2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", None)
SAME_END = "2027-01-01T02:00:00+02:00"
_KEYS = ("lake", "orders", "raw", "copy", "daily")
_PROJECT_KEYS = ("web", "app", "lab", "new")
PROJECTS = ("Web", "App", "Lab", "New", "Other", "Renamed")
NAMES = ("Alpha", "Beta", "Gamma", "Delta", "Ignored", "Omega")
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
        environments: Body = {"one": {}, "two": {}} if self.chance(0.6) else {"one": {}}
        top: Body = {"version": 1, "environments": environments, "policy": self._policy()}
        top["vars"] = {"every": "day", "end": ENDS[0]}
        if "two" in environments:
            environments["two"] = {"vars": {"every": dice.choice(("hour", "day"))}}
        if self.chance(0.4):
            top["defaults"] = {"batch_export": {"end_at": ENDS[0]}}
        files: Files = {"reconciler.yaml": top}
        for name in ("a.yaml", "b.yaml"):
            files[name] = {"projects": {}, "batch_exports": {}}
        for key in ("web", "app", "lab")[: dice.choice((1, 2, 2, 3))]:
            name = dice.choice(("a.yaml", "b.yaml"))
            files[name]["projects"][key] = self.project(key)
        self.files = files
        for _ in range(dice.randint(1, 5)):
            self.attempt(self.add_export)
        return files

    def _policy(self) -> Body:
        dice, policy = self.dice, dict[str, Any]()
        if self.is_quiet:
            return {"prune": True, "allow_project_deletion": True}
        policy["prune"] = self.chance(0.75)
        if self.chance(0.6):
            policy["allow_project_deletion"] = True
        if self.chance(0.08):
            policy["max_deletes"] = dice.choice((0, 1, "34%", "50%"))
        if self.chance(0.04):
            policy["max_changes"] = dice.choice((0, 2))
        if self.chance(0.06):
            policy["deny"] = [dice.choice(("history-lost", "project-data-lost"))]
        if self.chance(0.2):
            policy["ignore"] = [dice.choice(("Ign*", "Alpha", "Beta", "Web*"))]
        return policy

    def project(self, key: str) -> Body:
        body: Body = {"_uid": f"p{self.number()}", "name": key.title()}
        if self.chance(0.5):
            body["timezone"] = self.dice.choice(("UTC", "Europe/Berlin"))
        return body

    def destination(self, key: str) -> Body:
        dice = self.dice
        prefix = dice.choice((f"{key}/", f"{key}/", "shared/"))
        secrets = {name: f"${{secret:env:RECONCILER_SECRET_{x}}}" for name, x in _S3_SECRETS}
        kind = dice.choice(("place", "place", "place", "HTTP", "NoOp", "table"))
        kind = "NoOp" if self.is_quiet and self.chance(0.6) else kind
        if kind == "NoOp":
            return {"type": "NoOp", "config": {"arg": key}}
        if kind == "HTTP":
            token = {"token": "${secret:env:RECONCILER_SECRET_A}"} if self.chance(0.75) else {}
            url = "https://eu.i.posthog.com/batch/"
            return {"type": "HTTP", "config": {"url": url, **token}}
        if self.dialect == "2026":
            config = {"bucket_name": "acme", "region": "eu", "prefix": prefix}
            return {"type": "AwsS3", "config": config, "integration": "$project"}
        if kind == "place":
            config = {"bucket_name": "acme", "region": "eu", "prefix": prefix, **secrets}
            return {"type": "S3", "config": config}
        own = {"user": secrets["aws_access_key_id"], "password": secrets["aws_secret_access_key"]}
        config = {"host": "db.example", "database": "d", "schema": "public", **own}
        return {"type": "Postgres", "config": {**config, "table_name": prefix.strip("/")}}

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

    def attempt(self, edit_of: Callable[[], Edit], files: Files | None = None) -> Edit | None:
        """Draw an edit and make it, unless the files would be invalid then."""
        target = self.files if files is None else files
        trial = copy.deepcopy(target)
        try:
            edit = edit_of()
        except _NothingToEditError:
            return None
        edit(trial)
        if valid(trial):
            target.update(trial)
            return edit
        return None

    def edit(self, files: Files | None = None) -> Edit | None:
        """Draw and make one of the edits."""
        weights = QUIET_EDITS if self.is_quiet else EDITS
        name = self.dice.choices([*weights], [*weights.values()])[0]
        edit_of = partial(self._patch, *PATCHES[name]) if name in PATCHES else getattr(self, name)
        made = self.attempt(edit_of, files)
        if made is not None:
            self.log.append(name)
        return made

    def _some(self, kind: str, count: int) -> list[tuple[str, str, Body]]:
        items = self.items(kind)
        if len(items) < count:
            raise _NothingToEditError
        return self.dice.sample(items, count)

    def _one(self, kind: str = "batch_export") -> tuple[str, str, Body]:
        return self._some(kind, 1)[0]

    def _any_kind(self) -> str:
        return self.dice.choice(("batch_export", "batch_export", "project"))

    def _change(self, change: Callable[[Body], None], kind: str = "batch_export") -> Edit:
        """Return an edit of the body of one resource, by key."""
        return _edit_of(kind, self._one(kind)[1], change)

    def _patch(self, kind: str, patches: Sequence[Body]) -> Edit:
        """Return an edit that merges one of some values into a resource."""
        return self._change(_merging(self.dice.choice(patches)), kind)

    def add_export(self) -> Edit:
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
        name = self.dice.choice([name for name in self.files if name != "reconciler.yaml"])
        return _addition(name, "batch_export", key, body)

    def add_twin(self) -> Edit:
        (file, _, old), key = self._one(), self.free_key("batch_export")
        body = {**old, "_uid": f"e{self.number()}", "name": self.free_name()}
        body.pop("id", None)
        return _addition(file, "batch_export", key, body)

    def add_project(self) -> Edit:
        """Add a project, perhaps with a name that differs from another one only in case."""
        key = self.free_key("project", _PROJECT_KEYS)
        body = self.project(key)
        if self.chance(0.3):
            body["name"] = self.dice.choice(("web", "APP", "Lab", "Web"))
        add = _addition("a.yaml", "project", key, body)
        twin = {**body, "_uid": f"p{self.number()}", "name": body["name"].swapcase()}
        both = _all(add, _addition("b.yaml", "project", f"{key}2", twin))
        return both if self.chance(0.6) else add

    def rename(self) -> Edit:
        name, keeps, (_, key, old) = self.free_name(), self.chance(0.25), self._one()
        rename = _edit_of("batch_export", key, _named(name))
        keep = _edit_of("batch_export", key, _lifecycle(renamed_from=[old["name"]]))
        return _all(keep, rename) if keeps else rename

    def change_integration(self) -> Edit:
        """Name the integration of any project, perhaps of another one."""
        number = 101 + self.dice.randrange(3)

        def change(body: Body) -> None:
            if "integration" in body["destination"]:
                body["destination"]["integration"] = number

        return self._change(change)

    def rekey(self) -> Edit:
        """Change the key, and perhaps a field or the name in the same commit."""
        key, name = self.free_key("batch_export"), self.free_name()
        rekey = _rekey("batch_export", self._one()[1], key)
        change = _named(name) if self.chance(0.3) else self._field_change()
        return rekey if self.chance(0.3) else _all(rekey, _edit_of("batch_export", key, change))

    def rekey_project(self) -> Edit:
        return _rekey("project", self._one("project")[1], self.free_key("project", _PROJECT_KEYS))

    def swap_names(self) -> Edit:
        kind = self.dice.choice(("batch_export",) * 4 + ("project",))
        (_, one, first), (_, two, second) = self._some(kind, 2)
        rename = _edit_of(kind, one, _named(second["name"]))
        return _all(rename, _edit_of(kind, two, _named(first["name"])))

    def swap_keys(self) -> Edit:
        return self._swap_keys("batch_export")

    def swap_project_keys(self) -> Edit:
        """Exchange the keys of two projects, with those of two exports in them or without."""
        swap = self._swap_keys("project")
        return swap if self.chance(0.5) else _all(swap, self._swap_keys("batch_export"))

    def _swap_keys(self, kind: str) -> Edit:
        """Exchange two keys. The exports of a project stay in it, or are in the other one then."""
        moves = kind == "project" and self.chance(0.3)
        (_, one, _), (_, two, _) = self._some(kind, 2)

        def swap(files: Files) -> None:
            parents = {key: body["project"] for _, key, body in self.items("batch_export", files)}
            for old, new in ((one, "swapping"), (two, one), ("swapping", two)):
                _rekey(kind, old, new)(files)
            for _, key, body in self.items("batch_export", files) if moves else ():
                body["project"] = parents[key]

        return swap

    def move(self) -> Edit:
        target = self._one("project")[1]
        return self._change(lambda body: body.update(project=target))

    def refer(self) -> Edit:
        """Name the project of an export by its live name or id instead of the key."""
        _, key, export = self._one()
        named = [body for _, own, body in self.items("project") if own == export["project"]]
        if not named:
            raise _NothingToEditError
        to = {"name": named[0]["name"]} if self.chance(0.6) else {"id": _id_of(named[0]["_uid"])}
        return _edit_of("batch_export", key, lambda body: body.update(project=to))

    def remove(self) -> Edit:
        return _removal("batch_export", self._one()[1])

    def recreate(self) -> Edit:
        """Remove an export, and declare another one of its name, perhaps in another project."""
        (file, old, body), key = self._one(), self.free_key("batch_export")
        to = {"project": self._one("project")[1], "destination": self.destination(key)}
        body = {**body, "_uid": f"e{self.number()}", **to}
        body.pop("id", None)
        return _all(_removal("batch_export", old), _addition(file, "batch_export", key, body))

    def remove_project(self) -> Edit:
        key = self._one("project")[1]
        return _all(_removal("project", key), _emptying(key))

    def remove_all(self) -> Edit:
        def remove(files: Files) -> None:
            for name in files.keys() - {"reconciler.yaml"}:
                files[name] = {"projects": {}, "batch_exports": {}}

        return remove

    def absent_project(self) -> Edit:
        """Delete a project by `state: absent`, with the exports in it or without them."""
        key = self._one("project")[1]
        absent = _edit_of("project", key, lambda body: body.update(state="absent"))
        return _all(_emptying(key), absent) if self.chance(0.6) else absent

    def _field_change(self) -> Callable[[Body], None]:
        to, merge = self.dice.choice(("one", "two", "shared")), _merging(self.dice.choice(_FIELDS))
        name = self.free_name() if self.chance(0.15) else None
        if name is None and self.chance(0.7):
            return merge

        def change(body: Body) -> None:
            config = body["destination"]["config"]
            for field in {"prefix", "table_name", "arg"} & config.keys():
                config[field] = f"{to}/" if field == "prefix" else to
            body["name"] = name or body["name"]

        return change

    def change_field(self) -> Edit:
        return self._change(self._field_change())

    def change_type(self) -> Edit:
        to = self.destination(self.dice.choice(_KEYS))
        return self._change(lambda body: body.update(destination=copy.deepcopy(to)))

    def drop_field(self) -> Edit:
        """Remove fields that an earlier commit may have set."""
        kind = self._any_kind()
        fields = self.dice.sample(_DROPPED[kind], 3)

        def change(body: Body) -> None:
            for field in fields:
                body.pop(field, None)
                body.get("destination", {}).get("config", {}).pop(field, None)

        return self._change(change, kind)

    def change_defaults(self) -> Edit:
        """Let the workspace or a file have other defaults, or none."""
        name = self.dice.choice(sorted(self.files))
        export = merged(self.dice.choice(_DEFAULTS), self.dice.choice(_DEFAULTS))
        own = {"batch_export": export, "project": self.dice.choice(_OF_PROJECTS)}
        own = own if self.chance(0.8) else {}
        return lambda files: files[name].update(defaults=copy.deepcopy(own))

    def pin(self) -> Edit:
        (_, key, own), (_, _, other) = self._one(), self._one()
        uid = other["_uid"] if self.chance(0.2) else own["_uid"]
        return _edit_of("batch_export", key, lambda body: body.update(id=str(_id_of(uid))))

    def rotate_secret(self) -> Edit:
        number, other = str(self.number()), self.chance(0.5)

        def change(body: Body) -> None:
            config = body["destination"]["config"]
            names = [name for name in config if str(config[name]).startswith("${secret:")]
            if other and names:
                config[names[0]] = "${secret:env:RECONCILER_SECRET_C}"
            else:
                body["secret_version"] = number

        return self._change(change)

    def narrow(self) -> Edit:
        """Load only some of the files."""
        names = self.dice.choice((["a.yaml"], ["a.yaml", "b.yaml"]))
        return lambda files: files["reconciler.yaml"].update(resources=names)

    def ignore(self) -> Edit:
        """Ignore an object and rename its resource out of the glob, in one commit."""
        (_, key, old), name = self._one(), self.free_name()
        rename, globs = _edit_of("batch_export", key, _named(name)), [old["name"][:3] + "*"]

        def change(files: Files) -> None:
            files["reconciler.yaml"]["policy"]["ignore"] = [*globs]

        return _all(change, rename) if self.chance(0.7) else change

    def change_policy(self) -> Edit:
        policy = self._policy()
        return lambda files: files["reconciler.yaml"].update(policy=dict(policy))

    # Live state

    def record(self, files: Files, commit: int) -> None:
        """Record what these files declare and is live, as an apply of a commit does."""
        bodies = declared(clean(files), "one")
        for kind in KINDS:
            for _, key, body in self.items(kind, files):
                address, uid = f"{kind}.{key}", body["_uid"]
                own = bodies.get(address)
                if own is None or own.absent or uid not in self.live:
                    continue
                parent, identity = self.live[uid].get("_parent"), str(_id_of(uid))
                above, known = parent and str(_id_of(parent)), self.entries.items()
                self.entries = {key: item for key, item in known if item.id != identity}
                self.entries[address] = Entry(identity, own.name, above, commit, sent_by(own))

    def apply(self, files: Files, *, deletes: bool = True) -> None:
        """Let live state be what these files declare, by uid."""
        self.live = {**({} if deletes else self.live), **self._declared(files)}

    def _declared(self, files: Files) -> dict[str, Body]:
        now: dict[str, Body] = {}
        uids = {key: body["_uid"] for _, key, body in self.items("project", files)}
        bodies = declared(clean(files), "one")
        for kind in KINDS:
            for _, key, body in self.items(kind, files):
                resource = bodies.get(f"{kind}.{key}")
                if resource is None or resource.absent:
                    continue
                fields: Body = {}
                for path, value in resource.values.items():
                    _put(fields, path, value)
                if kind == "batch_export":
                    fields["_parent"] = self._uid_of_parent(resource.parent, uids, files)
                    if fields["_parent"] is None:
                        continue
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
                    _lifecycle(protect=True)(body)

    def forget(self) -> None:
        """Declare an export with two former names, of which one or both are live."""
        projects = {body["_uid"]: key for _, key, body in self.items("project")}
        live, former = [uid for uid in self._projects() if uid in projects], ["First", "Second"]
        rest: Body = {"interval": "day", "destination": {"type": "NoOp", "config": {"arg": "x"}}}
        body = {"_uid": f"e{self.number()}", "name": "Third", **rest}
        body["lifecycle"] = {"renamed_from": former}
        if not live:
            return
        parent = self.dice.choice(live)
        body["project"] = projects[parent]
        if self.attempt(lambda: _addition("a.yaml", "batch_export", "third", body)) is not None:
            for name in self.dice.choice((former, former, former[:1])):
                own = {"name": name, "_parent": parent, **copy.deepcopy(rest)}
                self.live[f"e{self.number()}"] = own

    def _uid_of_parent(self, parent: Any, uids: dict[str, str], files: Files) -> str | None:
        how, text = parent
        if how == "key":
            return uids.get(text.partition(".")[2])
        for _, _, body in self.items("project", files):
            if text == (body["name"] if how == "name" else str(_id_of(body["_uid"]))):
                return str(body["_uid"])
        return None

    def _exports(self) -> list[str]:
        return [uid for uid, body in self.live.items() if "_parent" in body]

    def _projects(self) -> list[str]:
        return [uid for uid, body in self.live.items() if "_parent" not in body]

    def happen(self) -> None:
        """Let something happen in the service."""
        dice = self.dice
        exports, projects = self._exports(), self._projects()
        what = dice.choice(HAPPENINGS)
        self.log.append(f"live: {what}")
        if what == "project" or (what == "rename project" and not projects) or not projects:
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
        if what == "delete":
            del self.live[uid]
        elif what == "rename":
            body["name"] = dice.choice((f"{body['name']} (do not touch)", self.free_name()))
        elif what == "spaces":
            body["name"] = f" {body['name']} "
        elif what == "marker":
            body["name"] = f"{body['name']} {_MARK}"
        elif what in ("duplicate", "twin", "copy elsewhere"):
            other = copy.deepcopy(body)
            if what == "twin":
                other["name"] = self.free_name()
            if what == "copy elsewhere":
                other["_parent"] = dice.choice(projects)
            self.live[f"e{self.number()}"] = other
        elif what == "pause":
            body["paused"] = not body.get("paused", False)
        elif what == "end":
            passed = ("2026-05-01T00:00:00Z", "2026-05-30T00:00:00Z")
            body["end_at"] = dice.choice((*passed, SAME_END, *ENDS))
        else:
            changed = {**copy.deepcopy(body), "name": body["name"], "interval": body["interval"]}
            self._field_change()(changed)
            self.live[uid] = {**changed, "name": body["name"]}

    def seeded(self) -> list[Body]:
        """Return the live projects as the service is planted with them."""
        found = []
        for uid in self._projects():
            body = {"id": _id_of(uid), "anonymize_ips": False, **self.live[uid]}
            body["batch_exports"] = [
                _planted({"id": _id_of(child), **own}, int(body["id"]), self.dialect)
                for child in self._exports()
                if (own := dict(self.live[child])).pop("_parent") == uid
            ]
            found.append(body)
        return found


def _weights(*lines: str) -> dict[str, float]:
    """Return how often each edit is drawn."""
    pairs = (pair.split() for line in lines for pair in line.split(", "))
    return {name: float(weight) for name, weight in pairs}


_S3_SECRETS = (("aws_access_key_id", "A"), ("aws_secret_access_key", "B"))
_OPTIONAL = {"end_at": ENDS, "paused": (True, False), "model": ("events", "persons", None)}
_EXCLUDED = [
    {"destination": {"config": {"exclude_events": names}}} for names in (["a", "b"], ["c"])
]
_FIELDS: Sequence[Body] = (
    *({"interval": interval} for interval in ("hour", "day", "hour", "day")),
    *({"end_at": end} for end in (*ENDS, SAME_END)),
    *_EXCLUDED,
    {"paused": True},
    {"paused": False},
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
_DROPPED = {
    "batch_export": ("end_at", "paused", "model", "exclude_events"),
    "project": ("timezone", "anonymize_ips", "surveys_opt_in"),
}
_PROTECTS = [{"lifecycle": {"protect": protects}} for protects in (True, True, False)]
_LAYERS: Sequence[Body] = ({"interval": "day"}, {"end_at": ENDS[1]}, {"end_at": UNSET})
PATCHES: Mapping[str, tuple[str, Sequence[Body]]] = {
    "absent": ("batch_export", ({"state": "absent"},)),
    "change_model": ("batch_export", [{"model": model} for model in ("events", "persons", None)]),
    "unset_field": (
        "batch_export",
        (
            *({"end_at": UNSET}, {"end_at": UNSET}, {"model": UNSET}),
            {"destination": {"config": {"exclude_events": UNSET}}},
        ),
    ),
    "change_project": ("project", _OF_PROJECTS),
    "rename_project": ("project", [{"name": x} for x in ("Web", "App", "Lab", "New", "web")]),
    "protect": ("batch_export", _PROTECTS),
    "protect_project": ("project", _PROTECTS),
    "loosen": (
        "batch_export",
        (
            {"lifecycle": {"ignore_changes": ["destination"]}},
            {"lifecycle": {"ignore_changes": ["end_at", "interval"]}},
            {"lifecycle": {"allow_replace": True}},
            *({"lifecycle": {"beside": [name]}} for name in NAMES[:2]),
            *({"lifecycle": {"renamed_from": [name]}} for name in NAMES[:2]),
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
    "rekey_project 1.5, swap_names 2.5, swap_keys 1, swap_project_keys 1",
    "change_integration 0.5, move 2, refer 1, remove 5, remove_project 4",
    "remove_all 1, recreate 2, absent 1.5, absent_project 1.5, change_field 5, change_model 1",
    "change_type 1.5, drop_field 3, unset_field 3, change_defaults 5, change_project 2",
    "protect 3, protect_project 1, loosen 3, limit 2, override 2, vary 2, pin 1.5",
    "rotate_secret 3, narrow 2, ignore 4, change_policy 1",
)
QUIET_EDITS = _weights(
    "add_project 2, remove_project 2, remove 1, add_export 1, change_field 1, change_project 1"
)
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


def _edit_of(kind: str, key: str, change: Callable[[Body], None]) -> Edit:
    def edit(files: Files) -> None:
        for value in files.values():
            if key in value.get(KINDS[kind], {}):
                change(value[KINDS[kind]][key])

    return edit


def _addition(file: str, kind: str, key: str, body: Body) -> Edit:
    return lambda files: files[file][KINDS[kind]].update({key: copy.deepcopy(body)})


def _merging(patch: Body) -> Callable[[Body], None]:
    return lambda body: body.update(merged(body, copy.deepcopy(patch)))


def _named(name: str) -> Callable[[Body], None]:
    return lambda body: body.update(name=name)


def _lifecycle(**entries: Any) -> Callable[[Body], None]:
    return lambda body: body.setdefault("lifecycle", {}).update(copy.deepcopy(entries))


def _all(*edits: Edit) -> Edit:
    def edit(files: Files) -> None:
        for each in edits:
            each(files)

    return edit


def _put(body: Body, path: str, value: Any) -> None:
    *above, last = path.split(".")
    for part in above:
        body = body.setdefault(part, {})
    body[last] = value


def _rekey(kind: str, old: str, new: str) -> Edit:
    """Return an edit as `mv` makes it: the key, and the references to it."""

    def edit(files: Files) -> None:
        for value in files.values():
            own = value.get(KINDS[kind], {})
            if old in own:
                value[KINDS[kind]] = {new if key == old else key: own[key] for key in own}
            for body in value.get("batch_exports", {}).values() if kind == "project" else ():
                if body.get("project") == old:
                    body["project"] = new

    return edit


def _removal(kind: str, key: str) -> Edit:
    def edit(files: Files) -> None:
        for value in files.values():
            value.get(KINDS[kind], {}).pop(key, None)

    return edit


def _emptying(project: str) -> Edit:
    """Return an edit that removes the exports that refer to a project by its key."""

    def edit(files: Files) -> None:
        for value in files.values():
            exports = value.get("batch_exports", {})
            for key in [k for k, body in exports.items() if body.get("project") == project]:
                del exports[key]

    return edit


def _planted(value: Any, project: int, dialect: str) -> Any:
    """Return a live export: secrets have values, and integrations are those of its project."""
    if isinstance(value, dict):
        planted = {
            key: _planted(item, project, dialect)
            for key, item in value.items()
            if item != "${unset}" and not (item is None and key in ("model", "end_at"))
        }
        if "integration" in value:
            planted["integration"] = 100 + project
        if value.get("type") == "HTTP":
            planted["config"].setdefault("token", "old-secret")
        if value.get("destination", {}).get("type") == "HTTP":
            planted.pop("model", None)
        return planted
    if isinstance(value, str) and value.startswith("${secret:"):
        return "old-secret"
    return value


def clean(files: Files) -> Files:
    """Return files without the hidden ids, and with the integration of each project."""
    files = copy.deepcopy(files)
    projects = [item for value in files.values() for item in value.get("projects", {}).items()]
    uids = {key: body.get("_uid") for key, body in projects}
    names = {body["name"]: body.get("_uid") for _, body in projects}
    for _, _, body in all_resources(files):
        body.pop("_uid", None)
        to = body.get("destination", {})
        if to.get("integration") == "$project":
            to["integration"] = _integration(body["project"], uids, names)
    return files


def _integration(parent: Any, uids: Body, names: Body) -> int:
    """Return the integration of a project that is named by key, live name or id."""
    if not isinstance(parent, str) and "id" in parent:
        return 100 + int(parent["id"])
    uid = uids.get(parent) if isinstance(parent, str) else names.get(parent["name"])
    return 100 + (int(uid[1:]) if uid else 1)


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
            if item.value(TYPE) == "HTTP" and item.value("model") != "events":
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
    """Return the world of a seed."""
    drawing = Drawing(seed, dialect)
    dice = drawing.dice
    commits = [Commit(copy.deepcopy(drawing.files))]
    for _ in range(dice.choice((0, 1, 1, 2))):
        _committed(drawing, commits)
    world = _shaped(drawing, commits)
    _live(drawing, world, commits)
    world.commits = [Commit(clean(item.files), item.parents) for item in commits]
    world.later = _later(drawing, world)
    world.work = clean(world.work)
    world.log = drawing.log
    _options(drawing, world)
    return world


def _exports_of(files: Files) -> list[Body]:
    return [body for value in files.values() for body in value.get("batch_exports", {}).values()]


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
    shape = dice.choice(("feature", "feature", "main", "main", "main", "moved", "job"))
    drawing.log.append(f"shape: {shape}")
    if shape in ("feature", "moved"):
        world.default, world.branch = fork, "feature"
        head = _committed(drawing, commits, fork)
        if drawing.chance(0.5):
            head = _committed(drawing, commits, head)
        main = fork
        if shape == "moved":
            main = _main_moves(drawing, commits, fork, head)
            head = len(commits) - 1 if drawing.chance(0.4) else head
        world.head, world.default = head, main
    elif shape == "job" or drawing.chance(0.5):
        world.default = fork
    world.job = shape == "job" or (world.default is not None and drawing.chance(0.1))
    world.work = copy.deepcopy(commits[world.head].files)
    drawing.files = copy.deepcopy(world.work)
    if drawing.chance(0.3 if world.default is not None else 0.6):
        drawing.log.append("uncommitted:")
        for _ in range(dice.choice((1, 2))):
            drawing.edit()
        world.work = copy.deepcopy(drawing.files)
    return world


def _main_moves(drawing: Drawing, commits: list[Commit], fork: int, head: int) -> int:
    """Commit an edit on main, and merge main into the feature branch; return the tip of main."""
    feature = drawing.files
    drawing.files = copy.deepcopy(commits[fork].files)
    edit = drawing.attempt(drawing.add_export) if drawing.chance(0.5) else drawing.edit()
    commits.append(Commit(copy.deepcopy(drawing.files), (fork,)))
    main = len(commits) - 1
    both = copy.deepcopy(feature)
    if edit is not None:
        edit(both)
    drawing.files = both if valid(both) else feature
    commits.append(Commit(copy.deepcopy(drawing.files), (head, main)))
    drawing.log.append("merged main")
    return main


def _live(drawing: Drawing, world: World, commits: list[Commit]) -> None:
    """Let an earlier commit be applied, perhaps a later one in part, and something happen."""
    dice = drawing.dice
    line = sorted(world.ancestors(world.head))
    first = dice.choice(line[:-1] or line) if drawing.chance(0.7) else line[-1]
    if world.default is not None and drawing.chance(0.3):
        first = world.default
    if drawing.is_quiet:
        first = line[-2:][0]
    drawing.apply(commits[first].files)
    drawing.record(commits[first].files, first)
    world.newest = first
    later = [number for number in range(len(commits)) if number > first]
    if later and drawing.chance(0.3):
        drawing.log.append("applied in part")
        world.newest = dice.choice(later)
        drawing.apply(commits[world.newest].files, deletes=drawing.chance(0.5))
        drawing.record(commits[world.newest].files, world.newest)
    for _ in range(0 if drawing.is_quiet else dice.choice((0, 0, 1, 1, 2, 3))):
        drawing.happen()
    if not drawing.is_quiet and drawing.chance(0.4):
        drawing.cut_short(commits)
    elif not drawing.is_quiet and drawing.chance(0.06):
        drawing.forget()
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
    removed = sorted(record.keys() - now.keys()) if drawing.chance(0.6) else []
    key = dice.choice(removed or sorted(record))
    entry, other = record[key], record[dice.choice(sorted(record))]
    live = [str(_id_of(uid)) for uid in drawing.live if (uid[0] == "p") == (key[0] == "p")]
    what = dice.choice(("none", "none", "lost", "commit", "commit", "id", "name", "drop", "sent"))
    drawing.log.append(f"entry {key}: {what}")
    if what == "drop":
        del record[key]
    elif what == "sent":
        record[key] = replace(entry, sent=None)
    elif what == "id" and live:
        taken = {item.id for item in record.values()}
        free = [item for item in live if item not in taken]
        record[key] = replace(entry, id=dice.choice(free)) if free else entry
    elif what == "name":
        record[key] = replace(entry, name=other.name)
    elif what in ("none", "lost", "commit"):
        commits = {"none": None, "lost": LOST, "commit": dice.randrange(len(world.commits))}
        record[key] = replace(entry, commit=commits[what])


def _later(drawing: Drawing, world: World) -> Files | None:
    """Return files that are changed after a plan was saved, perhaps."""
    drawing.files = copy.deepcopy(world.work)
    is_changed = drawing.chance(0.4) and drawing.edit() is not None
    return clean(drawing.files) if is_changed else None


def _options(drawing: Drawing, world: World) -> None:
    dice = drawing.dice
    is_cut_short = "live: a move was cut short" in drawing.log
    world.allow_replace = drawing.is_quiet or drawing.chance(0.5 if is_cut_short else 0.7)
    if drawing.is_quiet:
        return
    if drawing.chance(0.05):
        world.no_inventory = True
    exports = [body for project in world.projects for body in project["batch_exports"]]
    own = [str(body[what]) for body in world.projects for what in ("name", "id")]
    names = [body["name"].strip() for body in (*exports, *_exports_of(world.work))]
    addresses = [*declared(world.work, "one")]
    known = [*own, *names, *(str(body["id"]) for body in exports), *addresses, *addresses]
    known += [address.partition(".")[2] for address in addresses]
    known += ["*", "l*", "*a", "batch_export.*", "A*", "[op]*", "*.web", "none", "*-0000000000*"]
    chosen = tuple(dice.sample(known, dice.choice((1, 1, 2))))
    if drawing.chance(0.12):
        world.targets, world.excludes = (chosen, ()) if drawing.chance(0.5) else ((), chosen)
    elif drawing.chance(0.05):
        world.parents = (dice.choice((*own, "web", "app", "lab", "*", "a*", "W*")),)
    elif drawing.chance(0.04):
        world.kinds = (dice.choice(("project", "batch_export", "batch_exports", "b*")),)
    secret = [address for address, item in declared(world.work, "one").items() if item.secrets]
    if secret and drawing.chance(0.06):
        world.rotate = ("*",) if drawing.chance(0.5) else (dice.choice(sorted(secret)),)
    names = [name for name in world.commits[world.head].files if name != "reconciler.yaml"]
    if drawing.chance(0.1):
        world.sparse = (dice.choice(names),)
        later = replace(world, work=world.later or world.work)
        if not (valid(checked_out(world)) and valid(checked_out(later))):
            world.sparse = ()
