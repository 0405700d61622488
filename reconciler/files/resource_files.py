"""The resource files of a workspace, and what they and other YAML files of a repository declare.

What was removed from one file may have moved to another one, or to another workspace. Where this
is not known, the file counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path as FolderPath
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import yaml
from msgspec import Struct, field

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.errors import LoadingStopped, ReconcilerError, UnreadableFile
from reconciler.files.sources import FolderSource, Source
from reconciler.files.validation import CheckContext, check, shortened
from reconciler.files.workspace_file import ANCHORS, DEFAULTS, Workspace
from reconciler.files.yaml_document import Document, Unknown
from reconciler.files.yaml_loader import Parse, parse
from reconciler.kinds import all_kinds, kinds_by_collection, kinds_by_name
from reconciler.model.kind import Kind
from reconciler.model.resource import Desired
from reconciler.model.text import choice, joined, listed, nearest, quoted
from reconciler.model.values import Address, Path, mapping_of
from reconciler.paths import (
    MAX_FILES,
    SKIPPED_FOLDERS,
    WORKSPACE_FILE,
    YAML_SUFFIXES,
    is_passed_over,
    leaves_workspace,
)

if TYPE_CHECKING:
    from reconciler.git.repository import Repository

_MOST_LISTED = 5
_LONGEST_GLOB = 500
_ALL_YAML = ("**/*.yaml", "**/*.yml")
_MOST_COMPARED = 1_000
"""Names that are compared to suggest one."""
_KEY = re.compile(rb"^[\s?\"'{-]*([\w./$-]+)[\"']?[ \t]*:(?:\s|$)", re.MULTILINE)
"""A key at any indentation: files of other tools have some."""
_RESOURCE_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SIMILAR = 0.85
_SYNTAX = frozenset({"bad-yaml", "conflict-marker", "tab-indent"})
"""The codes of errors that end parsing, in YAML of other tools, too."""
_TEMPLATE = re.compile(rb"{{|{%|<%")
"""What only templates have: they become YAML when a tool has filled them in."""
_MISNAMED = ("reconciler.yml", "reconciler.yaml")
_OF_THE_WORKSPACE = (DEFAULTS, ANCHORS)
"""The keys that resource files share with the workspace file."""
MAX_ENTRIES = 1_000_000
_Names: TypeAlias = Mapping[Address, tuple[str, str | None]]
# It takes every scalar as text, whatever its tag: files of others need not be strict.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_MERGE = re.compile("<<[\"']?\\s*:")


class ResourceFiles(Struct, frozen=True):
    """The resource files of a workspace.

    `skipped` are files without resources that a pattern with wildcards selects, once the files are
    read.
    """

    source: Source
    workspace: Workspace
    problems: DiagnosticCollector
    parse: Parse = parse
    skipped: list[str] = field(default_factory=list)

    def documents(self) -> list[Document]:
        """Return every resource file, parsed, sorted by name."""
        read: list[Document] = []
        named = {glob for glob in resource_globs(self.workspace) if not _has_wildcard(glob)}
        for name in selected_files(self.source, self.workspace, self.problems):
            raw = self._read(name)
            own = DiagnosticCollector()
            if raw is None:
                read.append(Document(name, unread=True))
            elif name not in named and _is_foreign(raw, name, self.parse, own):
                self.skipped.append(name)
                if not _TEMPLATE.search(raw):
                    self._report_broken(own)
                if is_misnamed(name):
                    message = f"not read: a workspace file has the name {WORKSPACE_FILE}"
                    self.problems.error("misnamed-workspace", message, at=Mark(name))
            else:
                read.append(self.parse(raw, name, self.problems))
        return read

    def _report_broken(self, own: DiagnosticCollector) -> None:
        """Report a syntax error: nothing else says whether the file has resources."""
        is_chosen = "resources" in self.workspace.value
        report = self.problems.error if is_chosen else self.problems.warning
        for item in own.diagnostics:
            if item.code in _SYNTAX:
                hint = joined(item.hint, "or list only the resource files with `resources:`")
                report(item.code, f"not read: {item.message}", at=item.at, hint=hint)

    def note_skipped(self) -> None:
        """Add one note about all skipped files that have no other diagnostic."""
        reported = {item.at.file for item in self.problems.diagnostics if item.at is not None}
        names = [name for name in self.skipped if name not in reported]
        if not names:
            return
        what = "file is not a resource file" if len(names) == 1 else "files are not resource files"
        message = f"{len(names)} {what}: {listed(names, _MOST_LISTED)}"
        self.problems.note("skipped-files", message)

    def check_nested(self) -> None:
        """Report resources in the workspace file of another folder, which hides that folder."""
        for name in filter(_is_workspace, self.source.names()):
            raw = self._read(name) if name != WORKSPACE_FILE else None
            if raw is None:
                continue
            document = Document(name, unread=True)
            with suppress(LoadingStopped):
                document = parse(raw, name, DiagnosticCollector())
            for key in mapping_of(document.value).keys() & kinds_by_collection():
                what = "in a workspace file: its folder is another workspace, and not read"
                at = document.key_mark((key,))
                self.problems.error("nested-workspace", f"{key} {what}", at=at)

    def _read(self, name: str) -> bytes | None:
        try:
            raw = self.source.read(name)
        except UnreadableFile as error:
            self.problems.error(error.code, error.message, at=Mark(name))
            return None
        if raw is None:
            message = f"cannot read {name}: a link that is broken or leaves the folder"
            self.problems.error("unreadable-file", message, at=Mark(name))
        return raw


def resource_globs(workspace: Workspace) -> tuple[str, ...]:
    """Return the patterns of resource files, `./` left out; by default every YAML file."""
    globs = workspace.value.get("resources")
    return tuple(_plain(str(glob)) for glob in globs) if isinstance(globs, list) else _ALL_YAML


def _plain(glob: str) -> str:
    first, *others = glob.split("/")
    parts = [part for part in others if part not in ("", ".")]
    return "/".join(parts if first == "." else [first, *parts])


def files_by_glob(source: Source, globs: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the resource files that each pattern matches. Patterns stay in the workspace."""
    names = [name for name in source.names() if not _is_workspace(name)]
    return {glob: _matching(names, glob) for glob in globs if not leaves_workspace(glob)}


def _matching(names: Sequence[str], glob: str) -> list[str]:
    """Return the paths that a pattern matches. Upper case in extensions has no meaning."""
    pattern = _plain_extension(glob)
    return [name for name in names if fits_path(_plain_extension(name), pattern)]


def fits_path(path: str, glob: str) -> bool:
    """Return whether a pattern fits a whole path.

    `*` and `?` do not match a slash, `**` matches zero or more folders.
    """
    names, reached = path.split("/"), {0}
    for part in _parts(glob):
        if part == "**":
            reached = {end for first in reached for end in range(first, len(names) + 1)}
        else:
            reached = {at + 1 for at in reached if fnmatchcase("".join(names[at : at + 1]), part)}
    return len(names) in reached


@cache
def _parts(glob: str) -> Sequence[str]:
    """Return the parts of a pattern: `**.yaml` is `**/*.yaml`, and a bracket is no class."""
    spelt = re.sub(r"(?<=[^/*])\*\*", "*/**", re.sub(r"\*\*(?=[^/*])", "**/*", glob))
    return [part.replace("[", "[[]") for part in spelt.split("/")]


def _has_wildcard(glob: str) -> bool:
    return "*" in glob or "?" in glob


def _plain_extension(name: str) -> str:
    if name.endswith(YAML_SUFFIXES):
        return name
    stem, dot, extension = name.rpartition(".")
    plain = f"{dot}{extension.lower()}"
    return f"{stem}{plain}" if plain in YAML_SUFFIXES else name


def selected_files(
    source: Source, workspace: Workspace, problems: DiagnosticCollector
) -> Sequence[str]:
    """Return the names of the resource files, sorted. Report errors in their patterns."""
    globs = resource_globs(workspace)
    at = workspace.mark(("resources",))
    if too_long := [glob for glob in globs if len(glob) > _LONGEST_GLOB]:
        message = f"pattern {quoted(shortened(too_long[0]))} is too long"
        problems.error("bad-pattern", message, at=at)
        return ()
    matches = files_by_glob(source, globs)
    if isinstance(workspace.value.get("resources"), list):
        _check_patterns(matches, source, workspace, problems)
    names = sorted({name for selected in matches.values() for name in selected})
    if len(names) > MAX_FILES:
        message = f"{len(names):,} resource files: the limit is {MAX_FILES:,}"
        problems.error("workspace-too-large", message, at=at)
        return ()
    return names


def _check_patterns(
    matches: Mapping[str, Sequence[str]],
    source: Source,
    workspace: Workspace,
    problems: DiagnosticCollector,
) -> None:
    written = workspace.value["resources"]
    names = [name for name in source.names() if name.endswith(YAML_SUFFIXES)]
    for position, glob in enumerate(resource_globs(workspace)):
        at = workspace.mark(("resources", position))
        if leaves_workspace(glob):
            message = f"'{glob}' is outside the workspace"
            below = "keep resource files below the folder of reconciler.yaml"
            problems.error("outside-workspace", message, at=at, hint=below)
        elif not matches[glob]:
            message = f"no file matches '{written[position]}'"
            problems.error("no-files", message, at=at, hint=_hint(glob, names))


def _hint(glob: str, names: Sequence[str]) -> str | None:
    """Return why a pattern matches no file, or the most similar one that does."""
    if "${" in glob:
        return "references are not filled in here: write the path itself"
    *folders, name = glob.split("/")
    skipped = [part for part in folders if not _has_wildcard(part) and is_passed_over(part)]
    if skipped or name.startswith("."):
        return f"{(*skipped, name)[0]} is not read: a hidden name, or the folder of a tool"
    for file in filter(_is_workspace, names):
        folder = file.removesuffix(f"/{WORKSPACE_FILE}")
        if glob.startswith(f"{folder}/"):
            return f"{folder} is another workspace, with its own {WORKSPACE_FILE}: use -C {folder}"
    patterns = {name: name for name in names[:_MOST_COMPARED] if not _is_workspace(name)}
    for path in map(PurePosixPath, [*patterns]):
        for folder in map(str, path.parents[:-1]):
            beside, below = f"{folder}/*{path.suffix}", f"{folder}/**/*{path.suffix}"
            patterns |= {beside: beside, below: below, folder: below}
    wanted = glob.replace("\\", "/").rstrip("/")
    if wanted in ("", "."):
        return f"did you mean '{_ALL_YAML[0]}'?"
    close = nearest(
        wanted, [name for name in patterns if _has_wildcard(name) == _has_wildcard(wanted)]
    )
    return f"did you mean '{patterns[close]}'?" if close is not None else None


@cache
def _similar() -> frozenset[str]:
    """Return words for a collection in the plain form: singular, plural, and without its prefix."""
    words = {_form(word) for kind in all_kinds() for word in (kind.name, kind.collection)}
    return frozenset(words | {_form(name.rpartition("_")[2]) for name in kinds_by_collection()})


def _is_foreign(raw: bytes, file: str, parse: Parse, problems: DiagnosticCollector) -> bool:
    """Return whether a file has no resources, nor a mistake in place of them.

    A resource file has a collection, or a similar word, as a key at the top. In one that is no
    mapping any line may begin with a collection: a mistake must not hide resources. Files without
    keys are not foreign. The errors of the file go to `problems`.
    """
    if not _KEY.search(raw):
        return False
    document = Document(file, unread=True)
    with suppress(LoadingStopped):
        document = parse(raw, file, problems)
    if isinstance(document.value, dict):
        only_defaults = document.value.keys() - {ANCHORS} == {DEFAULTS}
        keys = mapping_of(document.value[DEFAULTS]) if only_defaults else document.value
        return not any(map(_is_similar, keys))
    # A similar word at any depth, such as `reports`, is usual in files of other tools.
    for match in _KEY.finditer(raw):
        key, at = match[1].decode(errors="ignore"), match.start(1)
        if _form(key) in _similar() or (raw[at - 1 : at] in (b"", b"\n") and _is_similar(key)):
            return False
    return True


def _is_similar(key: str) -> bool:
    """Return whether a key is a collection, or probably intended to be one."""
    form = _form(key)
    if form in _similar():
        return True
    from difflib import get_close_matches

    return bool(get_close_matches(form, _similar(), n=1, cutoff=_SIMILAR))


def _is_workspace(name: str) -> bool:
    return PurePosixPath(name).name == WORKSPACE_FILE


def is_misnamed(name: str) -> bool:
    """Return whether a file has nearly the name of a workspace file."""
    return PurePosixPath(name).name.casefold() in _MISNAMED


def _form(word: str) -> str:
    return word.casefold().replace("_", "").replace("-", "")


class Declaration(Struct, frozen=True, gc=False):
    """A resource as a file declares it."""

    address: Address
    document: Document
    path: Path
    body: Mapping[str, Any]

    @property
    def mark(self) -> Mark:
        """The place of its key."""
        return self.document.key_mark(self.path)


def is_key(text: str) -> bool:
    """Return whether a text may be the key of a resource."""
    return _RESOURCE_KEY.fullmatch(text) is not None


def declarations(
    files: Sequence[Document], problems: DiagnosticCollector
) -> dict[Address, Declaration]:
    """Return every resource by address. Report duplicates with both places."""
    collections = kinds_by_collection()
    known = (*collections, *_OF_THE_WORKSPACE)
    declared: dict[Address, Declaration] = {}
    for document in files:
        if not isinstance(document.value, dict):
            _report_no_mapping(document, problems)
            continue
        for collection, members in document.value.items():
            kind = collections.get(collection)
            if collection in _OF_THE_WORKSPACE:
                continue
            if kind is None:
                message = f"unknown field '{collection}' in a resource file"
                at, hint = document.key_mark((collection,)), choice(collection, known)
                problems.error("unknown-field", message, at=at, hint=hint)
            elif members is not None and not isinstance(members, (dict, Unknown)):
                message = f"`{collection}` must be a mapping from keys to resources"
                hint = "write `key:` for each resource, with its fields below"
                at = document.mark((collection,))
                problems.error("not-a-mapping", message, at=at, hint=hint)
            elif isinstance(members, dict):
                _collect(kind, document, collection, members, declared, problems)
    return declared


def check_shared_keys(document: Document, problems: DiagnosticCollector) -> None:
    """Check the keys that the workspace file has, too, and report defaults without effect."""
    values = mapping_of(document.value)
    shared = {key: values[key] for key in _OF_THE_WORKSPACE if key in values}
    context = CheckContext(document.file, document.mark, document.key_mark, problems)
    if shared:
        check("workspace", {"version": 1, **shared}, context)
    fields = shared.get(DEFAULTS)
    for kind in all_kinds():
        if kind.name in mapping_of(fields) and kind.collection not in values:
            reason = f"{document.file} has no `{kind.collection}`"
            message = f"`defaults.{kind.name}` without effect: {reason}"
            hint = f"move it to {WORKSPACE_FILE}, or to the file of the resources"
            at = document.key_mark((DEFAULTS, kind.name))
            problems.warning("no-effect", message, at=at, hint=hint)


def _report_no_mapping(document: Document, problems: DiagnosticCollector) -> None:
    if document.unread or isinstance(document.value, Unknown):
        return
    if document.value is None:
        if not any(line.lstrip().startswith("#") for line in document.lines):
            problems.warning("empty-file", "empty file", at=Mark(document.file))
        return
    message = "a resource file must be a mapping"
    hint = "start it with a line such as `batch_exports:`"
    if str(document.value).startswith("version https://git-lfs"):
        hint = "this is a pointer of Git LFS: run `git lfs pull`"
    problems.error("not-a-mapping", message, at=document.mark(()), hint=hint)


def _collect(
    kind: Kind,
    document: Document,
    collection: str,
    members: Mapping[str, Any],
    declared: dict[Address, Declaration],
    problems: DiagnosticCollector,
) -> None:
    for key, body in members.items():
        if "${" in key:  # The loader has reported it.
            continue
        declaration = Declaration(Address(kind.name, key), document, (collection, key), body)
        address, at = declaration.address, declaration.mark
        if not is_key(key):
            hint = "use letters, digits, _ - and . only; `name` may be any text"
            message = f"invalid resource key '{shortened(key)}'"
            problems.error("bad-key", message, at=at, hint=hint)
        elif isinstance(body, Unknown):
            continue
        elif not isinstance(body, dict):
            hint = "indent its fields below the key"
            problems.error("not-a-mapping", f"{address} has no fields", at=at, hint=hint)
        elif address in declared:
            related = ((declared[address].mark, "first declared here"),)
            message = f"{address} is declared twice"
            problems.error("declared-twice", message, at=at, related=related)
        else:
            declared[declaration.address] = declaration


def declared_in_others(
    repository: Repository,
    folder: FolderPath,
    read: Collection[FolderPath],
    names: _Names,
    *,
    service: Desired,
) -> Iterator[tuple[Address, str]]:
    """Yield the addresses that another file of a repository may declare, with the reason.

    `names` are the name of each object and of its project, None where that is not known. A file of
    the same workspace counts by the address, one of another workspace by the names. If a file
    is not here or cannot be read, it may declare all.
    """
    try:
        if repository.is_sparse:
            raise UnreadableFile("this sparse checkout leaves out YAML files")
        yield from _declared(FolderSource(repository.root), folder.resolve(), read, names, service)
    except ReconcilerError as error:
        yield from ((at, f"perhaps declared in another file: {error.message}") for at in names)


def _declared(
    source: FolderSource,
    own: FolderPath,
    read: Collection[FolderPath],
    names: _Names,
    service: Desired,
) -> Iterator[tuple[Address, str]]:
    loaded = {path.resolve() for path in read}
    is_other = cache(partial(_is_other, source, service=service))
    for path, workspace in _files(source.folder):
        if FolderPath(os.path.realpath(path)) in loaded or (
            workspace != own and is_other(workspace)
        ):
            continue
        shown = path.relative_to(source.folder).as_posix()
        text = _text(source, shown)
        content = _parsed(text)
        for address, (name, parent) in names.items():
            if content is None:
                is_declared = name in text or address.key in text
            elif workspace == own:
                collection = kinds_by_name()[address.kind].collection
                is_declared = address.key in mapping_of(content.get(collection))
            else:
                is_declared = _declares(content, address.kind, name, parent)
            if is_declared:
                yield address, f"perhaps declared in {shown}"


def _files(root: FolderPath) -> Iterator[tuple[FolderPath, FolderPath | None]]:
    """Yield every YAML file with the folder of its workspace, None outside of workspaces.

    Raises UnreadableFile for a folder that cannot be read, and for too many entries.
    """
    workspaces: dict[str, FolderPath | None] = {}
    entries = 0
    for parent, folders, files in os.walk(root, onerror=_stop):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        above = workspaces.get(str(FolderPath(parent).parent))
        workspace = FolderPath(parent) if WORKSPACE_FILE in files else above
        workspaces[parent] = workspace
        entries += len(folders) + len(files)
        if entries > MAX_ENTRIES:
            raise UnreadableFile(f"more than {MAX_ENTRIES:,} files and folders in the repository")
        for name in sorted(files):
            if name.lower().endswith(YAML_SUFFIXES):
                yield FolderPath(parent, name), workspace


def _stop(error: OSError) -> NoReturn:
    raise UnreadableFile(f"cannot read folder {error.filename}: {error.strerror}")


def _text(source: FolderSource, name: str) -> str:
    """Return the text of a file. Raises UnreadableFile."""
    raw = source.read(name)
    if raw is not None:
        with suppress(UnicodeDecodeError):
            return raw.decode()
    raise UnreadableFile(f"cannot read {name}")


def _parsed(text: str) -> Mapping[str, Any] | None:
    """Return the mapping that a file has, empty for another value, None if it can't be parsed."""
    if _MERGE.search(text):
        return None
    try:
        return mapping_of(yaml.load(text, Loader=_LOADER))  # noqa: S506 - no tag makes an object
    except (yaml.YAMLError, RecursionError):
        return None


def _is_other(source: FolderSource, workspace: FolderPath | None, service: Desired) -> bool:
    """Return whether a workspace is known to be of another address or organization."""
    content: Mapping[str, Any] = {}
    if workspace is not None:
        with suppress(ReconcilerError):
            name = (workspace / WORKSPACE_FILE).relative_to(source.folder).as_posix()
            content = _parsed(_text(source, name)) or {}
    places = [content, *map(mapping_of, mapping_of(content.get("environments")).values())]
    wanted = {"base_url": service.base_url.rstrip("/"), "organization": service.organization}
    for key, value in wanted.items():
        given = [str(place[key]).rstrip("/") for place in places if key in place]
        if given and not any("${" in text or text.lower() == value.lower() for text in given):
            return True
    return False


def _declares(content: Mapping[str, Any], kind: str, name: str, parent: str | None) -> bool:
    """Return whether a file may declare an object of a name in a project of a name."""
    kinds = kinds_by_name()
    field = kinds[kind].parent
    parents = mapping_of(content.get(kinds[field].collection)) if field is not None else {}
    for item in map(mapping_of, mapping_of(content.get(kinds[kind].collection)).values()):
        if not any(_may_be(text, name) for text in _texts(item, "name")):
            continue
        for ref in _texts(item, field) if field is not None and parent is not None else ():
            above = mapping_of(parents.get(ref)) if isinstance(ref, str) else mapping_of(ref)
            if not above or any(_may_be(text, parent) for text in _texts(above, "name")):
                return True
        if parent is None or field not in item:
            return True
    return False


def _texts(item: Mapping[str, Any], key: str) -> list[Any]:
    """Return the values of a field, with those of overrides."""
    overrides = map(mapping_of, mapping_of(item.get("overrides")).values())
    return [place[key] for place in (item, *overrides) if key in place]


def _may_be(text: Any, name: str | None) -> bool:
    """Return whether a value is a name, or reads a variable, or is no text."""
    return not isinstance(text, str) or "${" in text or text.strip() == name
