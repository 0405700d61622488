"""Draw worlds: a history of files, how far it was applied, what happened in the service since.

Situations that were once judged wrongly are drawn often. A world follows from its seed.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.model.declared import KINDS, TYPE, all_resources, declared, loaded_files, merged, sent_by
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
        made = self.attempt(getattr(self, name), files)
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
        key = self.free_key("project", _PROJECT_KEYS)
        body = self.project(key)
        if self.chance(0.3):
            body["name"] = self.dice.choice(("web", "APP", "Lab", "Web"))
        return _addition("a.yaml", "project", key, body)

    def rename(self) -> Edit:
        name, keeps, (_, key, old) = self.free_name(), self.chance(0.25), self._one()
        rename = _edit_of("batch_export", key, _named(name))
        keep = _edit_of("batch_export", key, _lifecycle(renamed_from=[old["name"]]))
        return _all(keep, rename) if keeps else rename

    def rename_from_two(self) -> Edit:
        """Rename, and list two former names of which one, both or none is live."""
        kind = self._any_kind()
        _, key, old = self._one(kind)
        name, first, second = self.dice.sample(NAMES if kind == "batch_export" else PROJECTS, 3)
        own = old["name"]
        first = own if self.chance(0.7) and own not in (name, second) else first
        keep = _edit_of(kind, key, _lifecycle(renamed_from=[first, second]))
        return _all(keep, _edit_of(kind, key, _named(name)))

    def change_integration(self) -> Edit:
        """Name the integration of any project, perhaps of another one."""
        number = 101 + self.dice.randrange(3)

        def change(body: Body) -> None:
            if "integration" in body["destination"]:
                body["destination"]["integration"] = number

        return self._change(change)

    def rename_project(self) -> Edit:
        name = self.dice.choice(("Web", "App", "Lab", "New", "web"))
        return self._change(_named(name), "project")

    def rekey(self) -> Edit:
        return _rekey("batch_export", self._one()[1], self.free_key("batch_export"))

    def rekey_and_change(self) -> Edit:
        """Change the key and a field or the name in the same commit."""
        key, name = self.free_key("batch_export"), self.free_name()
        change = _named(name) if self.chance(0.3) else self._field_change()
        rekey = _rekey("batch_export", self._one()[1], key)
        return _all(rekey, _edit_of("batch_export", key, change))

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

    def absent(self) -> Edit:
        return self._change(lambda body: body.update(state="absent"))

    def absent_project(self) -> Edit:
        """Delete a project by `state: absent`, with the exports in it or without them."""
        key = self._one("project")[1]
        absent = _edit_of("project", key, lambda body: body.update(state="absent"))
        return _all(_emptying(key), absent) if self.chance(0.6) else absent

    def _field_change(self) -> Callable[[Body], None]:
        dice = self.dice
        which = dice.choice(("interval", "config", "config", "end_at", "exclude", "paused", "name"))
        value, end = dice.choice(("one/", "two/", "shared/")), dice.choice((*ENDS, SAME_END))
        name = self.free_name()

        def change(body: Body) -> None:
            config = body["destination"]["config"]
            if which == "interval":
                body["interval"] = "hour" if body["interval"] == "day" else "day"
            elif which == "end_at":
                body["end_at"] = end
            elif which == "paused":
                body["paused"] = not body.get("paused", False)
            elif which == "name":
                body["name"] = name
            elif which == "exclude":
                config["exclude_events"] = ["a", "b"] if value == "one/" else ["c"]
            else:
                for field in {"prefix", "table_name", "arg"} & config.keys():
                    config[field] = value.strip("/") if field != "prefix" else value

        return change

    def change_field(self) -> Edit:
        return self._change(self._field_change())

    def change_model(self) -> Edit:
        model = self.dice.choice(("events", "persons", None))
        return self._change(lambda body: body.update(model=model))

    def change_type(self) -> Edit:
        to = self.destination(self.dice.choice(_KEYS))
        return self._change(lambda body: body.update(destination=copy.deepcopy(to)))

    def drop_field(self) -> Edit:
        """Remove fields that an earlier commit may have set."""
        fields = self.dice.sample(("end_at", "paused", "model", "exclude_events", "timezone"), 3)

        def change(body: Body) -> None:
            for field in fields:
                body.pop(field, None)
                body["destination"]["config"].pop(field, None)

        return self._change(change)

    def unset_field(self) -> Edit:
        fields = ("end_at", "end_at", "model", "destination.config.exclude_events")
        path = self.dice.choice(fields)
        return self._change(lambda body: _put(body, path, "${unset}"))

    def change_defaults(self) -> Edit:
        end = self.dice.choice(({}, *({"end_at": end} for end in ENDS)))
        return lambda files: files["reconciler.yaml"].update(defaults={"batch_export": dict(end)})

    def change_project(self) -> Edit:
        field = self.dice.choice(("timezone", "anonymize_ips", "surveys_opt_in"))
        value = self.dice.choice(("UTC", "Europe/Berlin") if field == "timezone" else (True, False))
        if self.chance(0.3):
            return self._change(lambda body: body.pop(field, None), "project")
        return self._change(lambda body: body.update({field: value}), "project")

    def protect(self) -> Edit:
        kind = self._any_kind()
        _, key, body = self._one(kind)
        return _edit_of(kind, key, _lifecycle(protect=not body.get("lifecycle", {}).get("protect")))

    def loosen(self) -> Edit:
        entries: list[Body] = [
            {"ignore_changes": ["destination"]},
            {"ignore_changes": ["end_at", "interval"]},
            {"allow_replace": True},
            {"beside": [self.free_name()]},
            {"renamed_from": [self.free_name()]},
        ]
        return self._change(_lifecycle(**self.dice.choice(entries)))

    def limit(self) -> Edit:
        names = self.dice.choice((["two"], ["one"], ["one", "two"]))
        if "two" not in self.files["reconciler.yaml"]["environments"]:
            raise _NothingToEditError
        return self._change(lambda body: body.update(environments=names))

    def override(self) -> Edit:
        layer = self.dice.choice(
            ({"interval": "day"}, {"end_at": ENDS[1]}, {"end_at": "${unset}"}, {"paused": True})
        )
        has_two = "two" in self.files["reconciler.yaml"]["environments"]
        some = (["one"], ["one"], ["two"], ["one", "two"])
        names = self.dice.choice(some) if has_two else ["one"]
        own = {"one": layer, "two": layer if self.chance(0.3) else {"interval": "week"}}
        added = {name: own[name] for name in names}
        return self._change(
            lambda body: body.setdefault("overrides", {}).update(copy.deepcopy(added))
        )

    def vary(self) -> Edit:
        """Set a field by a variable that each environment may set."""
        field, name = self.dice.choice((("interval", "every"), ("end_at", "end")))
        return self._change(lambda body: body.update({field: f"${{var:{name}}}"}))

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

    def move_file(self) -> Edit:
        file, key, _ = self._one()

        def change(files: Files) -> None:
            if key in files.get(file, {}).get("batch_exports", ()):
                body = files[file]["batch_exports"].pop(key)
                files.setdefault("c.yaml", {"projects": {}, "batch_exports": {}})
                files["c.yaml"]["batch_exports"][key] = body

        return change

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
        self.live = {**({} if deletes else self.live), **now}

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
EDITS = _weights(
    "add_export 3, add_twin 2, add_project 1, rename 4, rename_project 2, rekey 3",
    "rekey_and_change 6, rekey_project 1.5, swap_names 2.5, swap_keys 1, swap_project_keys 1",
    "rename_from_two 1.5, change_integration 0.5, move 2, refer 1, remove 5, remove_project 4",
    "remove_all 1, recreate 2, absent 1.5, absent_project 1.5, change_field 5, change_model 1",
    "change_type 1.5, drop_field 3, unset_field 3, change_defaults 2, change_project 2, protect 4",
    "loosen 3, limit 2, override 2, vary 2, pin 1.5, rotate_secret 3, move_file 1, narrow 1",
    "ignore 4, change_policy 1",
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
    for name in files["reconciler.yaml"]["environments"]:
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
    for name, share, change in (
        ("marker", 0.06, _mark_name),
        ("odd", None, _add_odd),
        ("unfinished", 0.2, _interrupt),
        ("defaults", 0.1, _add_defaults),
        ("rules", 0.15, _add_rules),
        ("lost", None, _lose),
        ("selection", None, _select),
    ):
        own = random.Random(f"{seed} {dialect} {name}")  # noqa: S311
        if share is None or own.random() < share:
            change(world, own)
    return world


def _select(world: World, dice: random.Random) -> None:
    """Name what is selected by keys, ids, names and globs, or select projects and kinds."""
    exports = [body for project in world.projects for body in project["batch_exports"]]
    names = [body["name"].strip() for body in (*world.projects, *exports, *_exports_of(world.work))]
    ids = [str(body["id"]) for body in (*world.projects, *exports)]
    keys = [address.partition(".")[2] for address in declared(world.work, world.environment)]
    globs = ["*", "l*", "*a", "batch_export.*", "A*", "[op]*", "*.web", "none", "*-0000000000*"]
    known = [*names, *ids, *keys, *keys, *(f"batch_export.id:{i}" for i in ids if "-" in i), *globs]

    def some(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(dice.sample(texts, min(len(texts), dice.choice((1, 1, 2)))))

    if world.targets and dice.random() < 0.7:
        world.targets = some(known)
    if world.excludes and dice.random() < 0.7:
        world.excludes = some(known)
    if dice.random() < 0.05:
        own = [str(body[what]) for body in world.projects for what in ("name", "id")]
        world.parents = some([*own, "web", "app", "lab", "*", "a*", "W*"])
        world.excludes = some(known) if dice.random() < 0.3 else ()
    if dice.random() < 0.04:
        world.kinds = (dice.choice(("project", "batch_export", "batch_exports", "b*")),)


def _interrupt(world: World, dice: random.Random) -> None:
    """Let the move of an export be cut short before its old object was deleted."""
    now = declared(checked_out(world), world.environment)
    exports = {str(x["id"]): (x, p) for p in world.projects for x in p["batch_exports"]}
    places = {project["name"]: project for project in world.projects}
    moves = [
        (key, to, *exports[entry.id], places[now[to].name])
        for key, entry in sorted((world.record or {}).items())
        if key in now and entry.id in exports and now[key].pinned is None
        for to in now
        if to.startswith("project.") and now[to].name in places
    ]
    # Few stay in their project: then both are ambiguous.
    moves = [move for move in moves if move[3] is not move[4]] if dice.random() < 0.9 else moves
    if not moves:
        return
    address, target, old, _, place = dice.choice(moves)
    key, work, commits = address.partition(".")[2], copy.deepcopy(world.work), list[Files]()
    was_protected = dice.random() < 0.4
    is_protected = dice.random() < (0.3 if was_protected else 0.7)
    for files in (*(commit.files for commit in world.commits), work):
        commits.append(copy.deepcopy(files))
        for value in commits[-1].values():
            body = value.get("batch_exports", {}).get(key)
            if body is not None and (is_protected if files is work else was_protected):
                body["lifecycle"] = {**body.get("lifecycle", {}), "protect": True}
            if body is not None and files is work:
                body["project"] = target.partition(".")[2]
    *commits, work = commits
    changed = replace(world, work=work)
    if not all(map(valid, (*commits, work, checked_out(changed)))):
        return
    own = declared(checked_out(changed), world.environment)[address]
    new: Body = copy.deepcopy(old)
    for path, value in own.values.items():
        _put(new, path, "old-secret" if str(value).startswith("${secret:") else value)
    is_known = new["destination"].get("integration") in (None, 100 + place["id"])
    if new["destination"]["type"] != old["destination"]["type"] or not is_known:
        return
    new |= {"id": _id_of("e97")}
    if dice.random() < 0.2:
        dice.choice((old, new)).update(dice.choice(({"end_at": ENDS[1]}, {"interval": "week"})))
    new = {path: value for path, value in new.items() if value is not None}
    doubled = [new, {**copy.deepcopy(new), "id": _id_of("e98")}]
    place["batch_exports"] += doubled[: 1 if dice.random() < 0.9 else 2]
    world.work, world.later = work, None
    world.allow_replace &= dice.random() < 0.6
    for commit, files in zip(world.commits, commits, strict=True):
        commit.files = files


def _lose(world: World, dice: random.Random) -> None:
    """Lose the inventory where only `ignore` explains why an object is not found."""
    if "ignore" in world.log and dice.random() < 0.7:
        world.record = None


def _add_defaults(world: World, dice: random.Random) -> None:
    """Let a file have defaults of its own: at each commit, from one on, only at one, or not yet."""
    exports: list[Body] = [
        {"end_at": ENDS[1]},
        {"end_at": None},
        {"paused": True},
        {"model": "persons"},
        {"secret_version": "2"},
        {"lifecycle": {"protect": True}},
        {"lifecycle": {"ignore_changes": ["interval"]}},
        {"destination": {"config": {"exclude_events": ["a", "b"]}}},
        {"destination": {"type": "NoOp", "config": {"arg": "default", "exclude_events": ["c"]}}},
    ]
    projects: list[Body] = [{"timezone": "Europe/Paris"}, {"anonymize_ips": True}]
    own = {
        "batch_export": merged(dice.choice(exports), dice.choice(exports)),
        "project": dice.choice((*projects, {})),
    }
    name = dice.choice([name for name in world.work if name != "reconciler.yaml"])
    versions = [commit.files for commit in world.commits] + [world.work]
    first, last = dice.randrange(len(versions)), dice.choice((len(versions), len(versions) - 1))
    changed = [
        {**files, name: {**files[name], "defaults": own}}
        if name in files and first <= number < last
        else files
        for number, files in enumerate(versions)
    ]
    *commits, work = changed
    trial = replace(world, work=work)
    if all(map(valid, changed)) and valid(checked_out(trial)):
        world.work, world.later = work, None
        for commit, files in zip(world.commits, commits, strict=True):
            commit.files = files


def _add_rules(world: World, dice: random.Random) -> None:
    """Add rules to the policy, perhaps others of the same ids in the environment."""
    known = {
        "address": [*declared(world.work, world.environment), "batch_export.l*", "*.web"],
        "name": [*NAMES, *PROJECTS, "*a", "*(*"],
        "project": ["web", "app", "lab", *PROJECTS, "1", "2", "*"],
        "kind": ["project", "batch_export", "*"],
        "action": ["create", "update", "replace", "pause", "unpause", "delete"],
        "destination": ["S3", "*S3", "Postgres", "HTTP", "NoOp"],
        "consequence": ["history-lost", "project-data-lost", "*-lost"],
        "field": ["interval", "timezone", "model", TYPE, "*"],
    }
    for files in filter(None, (world.work, world.later)):
        files["reconciler.yaml"] = copy.deepcopy(files["reconciler.yaml"])
    layers = ["top", "top", "one"] if dice.random() < 0.3 else ["top"]
    for number, layer in enumerate(layers):
        rule: Body = {"match": _match(dice, known), "message": "is not allowed"}
        rule |= {"severity": "warn"} if dice.random() < 0.1 else {}
        name = f"rule-{dice.randrange(2) if number else 0}"
        for files in filter(None, (world.work, world.later)):
            top = files["reconciler.yaml"]
            place = top if layer == "top" else top["environments"][world.environment]
            place.setdefault("policy", {}).setdefault("rules", {})[name] = rule


def _match(dice: random.Random, known: Mapping[str, list[str]]) -> Body:
    """Return a match of one or two keys."""
    found: Body = {}
    for key in dice.sample(sorted(known), dice.choice((1, 1, 2))):
        some = dice.choices(known[key], k=dice.choice((1, 1, 2)))
        # The model knows few consequences.
        out = 0 if key == "consequence" else 0.2
        some = ["!" + glob if dice.random() < out else glob for glob in some]
        found[key] = some[0] if len(some) == 1 else some
    # Which fields a delete has depends on what the service fills in.
    return {**found, "action": ["create", "update", "replace"]} if "field" in found else found


def _mark_name(world: World, dice: random.Random) -> None:
    """Let another tool have an export, and perhaps remove its marker from the files."""
    live = [export for project in world.projects for export in project["batch_exports"]]
    own = {body["name"] for body in _exports_of(world.work)}
    chosen = dice.choice([body for body in live if body["name"] in own] or live or [{"name": ""}])
    name, is_left, is_pinned = chosen["name"], dice.random() < 0.3, dice.random() < 0.4
    bodies = [body for commit in world.commits for body in _exports_of(commit.files)]
    for body in (*live, *bodies, *(_exports_of(world.work) if is_left else ())):
        if body["name"] == name:
            body["name"] = f"{name} {_MARK}"
    has_pins = any("id" in body for body in _exports_of(world.work))
    for body in _exports_of(world.work) if is_pinned and not has_pins else ():
        if body["name"] == name:
            body["id"] = chosen["id"]
            break
    world.later = None


def _add_odd(world: World, dice: random.Random) -> None:
    """Add an uncommitted export with two former names, or projects whose names differ in case."""
    work, projects = copy.deepcopy(world.work), copy.deepcopy(world.projects)
    names = sorted(loaded_files(work) & work.keys())
    live = {project["name"]: project for project in projects}
    own = {key: body["name"] for name in names for key, body in work[name]["projects"].items()}
    keys = [key for key, name in own.items() if name in live]
    if names and keys and dice.random() < 0.03:
        key, former = dice.choice(keys), ["First", "Second"]
        rest: Body = {"interval": "day", "destination": {"type": "NoOp", "config": {"arg": "x"}}}
        body = {"name": "Third", "project": key, **rest, "lifecycle": {"renamed_from": former}}
        work[names[0]]["batch_exports"]["third"] = body
        for name in dice.choice((former, former, former[:1], former[1:])):
            other = {"id": _id_of(f"e9{len(name)}"), "name": name, **copy.deepcopy(rest)}
            live[own[key]]["batch_exports"].append(other)
    if names and dice.random() < 0.04:
        for name in dice.sample(("Fresh", "FRESH", "fresh"), 2):
            work[names[0]]["projects"][f"{name}-{dice.randrange(9)}"] = {"name": name}
    changed = replace(world, work=work)
    if work != world.work and valid(work) and valid(checked_out(changed)):
        world.work, world.projects, world.later = work, projects, None


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
    world.projects = drawing.seeded()
    if drawing.chance(0.92):
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
    world.allow_replace = drawing.is_quiet or drawing.chance(0.7)
    if drawing.is_quiet:
        return
    if drawing.chance(0.05):
        world.no_inventory = True
    addresses = sorted(declared(world.work, "one"))
    if addresses and drawing.chance(0.12):
        chosen = tuple(dice.sample(addresses, min(len(addresses), dice.choice((1, 2)))))
        world.targets, world.excludes = (chosen, ()) if drawing.chance(0.5) else ((), chosen)
    secret = [address for address, item in declared(world.work, "one").items() if item.secrets]
    if secret and drawing.chance(0.06):
        world.rotate = ("*",) if drawing.chance(0.5) else (dice.choice(sorted(secret)),)
    names = [name for name in world.commits[world.head].files if name != "reconciler.yaml"]
    if drawing.chance(0.1):
        world.sparse = (dice.choice(names),)
        later = replace(world, work=world.later or world.work)
        if not (valid(checked_out(world)) and valid(checked_out(later))):
            world.sparse = ()
