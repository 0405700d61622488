"""A plan as a document: what it has and in which order, shared by all formats.

A writer of a format decides colours, widths and what is cut.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, Level, Mark, OfEnvironment
from reconciler.kinds import all_kinds
from reconciler.model.kind import Action, containers
from reconciler.model.plan import (
    Change,
    Consequence,
    NewPlace,
    Novelty,
    Plan,
    PlanSource,
    Reason,
    Severity,
    encode,
)
from reconciler.model.text import (
    cut_inside,
    in_ascii,
    listed,
    printable,
    several,
    shortened,
)
from reconciler.model.values import Address
from reconciler.planning.notes import NO_INVENTORY
from reconciler.planning.places import INSIDE
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan_entries import (
    ANY,
    Entry,
    entries_of,
    general,
    nouns,
    parent_of,
    summary,
    title,
)
from reconciler.render.plan_fields import with_names

LOOSENED = "loosened"
_LONGEST_TEXT = 200
_LONGEST_PLACE = 300
"""As long as a name of a host can be, which what comes before it must not hide."""
_LONGEST_BEFORE = 80
_MOST_NAMES, _MOST_IN_DANGER = 3, 20
_MOST_HOSTS = 6
_MOST_WHOLE = 5
"""Dangers or new places that are shown in full, so that a first screen has all."""
_LONGEST_WHOLE = 800
"""Characters of dangers that are shown in full."""
_MOST_LEAVING = 40
_BEFORE = re.compile(r" \(before: [^()]*\)")
_LONG_WORD = re.compile(r"\S{37,}")
_LONGEST_WORD = 36
_FIRST_WORDS = 49
"""Characters of a danger that one line always has: with the address, where data goes."""
_PLURALS = {"prefix": "prefixes"}
_SHORT_COMMIT = 7
_SHORT_ID = 8
_LONGEST_BRANCH = 80
_LONGEST_NAME = 40
_AGES = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
_NOT_USED = "not compared: the plan has only what the command requests"


class Part(StrEnum):
    """The sections of a plan in the order of a reviewer, with their titles."""

    DANGERS = "Dangers"
    LOOSENED = "Loosened since the apply"
    NEW = "New places and queries"
    REFUSED = "Refused by policy. Nothing will be applied."
    LATER = "Danger: takes effect after the merge."
    CHANGES = "Changes"
    DRIFT = "Drift"
    NOTES = "Notes"


_MOST: Mapping[Part, int] = {Part.DANGERS: 12, Part.NEW: 12}
"""Messages that are shown of a section. Of the others all are."""
TOP = Part.DANGERS, Part.LOOSENED, Part.NEW
"""The sections that several environments have together."""


class Item(Struct, frozen=True):
    """A message of a section.

    `subject` is what it is about, `short` that in few words. `code` is the rule. `names` are
    addresses that the text does not have. `group` is the address that gets data, by which it is
    counted if there are too many, `count` the number of its objects. The first `rank` is the worst.
    """

    text: str
    severity: Severity = Severity.WARNING
    subject: str = ""
    short: str = ""
    code: str = ""
    at: Mark | None = None
    hint: str | None = None
    names: str = ""
    group: str = ""
    count: int = 1
    change: Change | None = None
    rank: tuple[int, ...] = ()


class Section(Struct, frozen=True):
    """A section of a plan: messages or changes."""

    part: Part
    items: tuple[Item, ...] = ()
    entries: tuple[Entry, ...] = ()

    @property
    def severity(self) -> Severity | None:
        """The worst severity of its messages, None without one."""
        return min((item.severity for item in self.items), key=attrgetter("rank"), default=None)

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield its messages for annotations: errors if the plan is refused, else warnings."""
        level = Level.ERROR if self.part is Part.REFUSED else Level.WARNING
        before = "takes effect after the merge: " if self.part is Part.LATER else ""
        for item in self.items:
            text = before + ": ".join(filter(None, (item.subject, item.text)))
            text += f" ({item.names})" if item.names else ""
            yield Diagnostic(item.code, level, text, item.at, item.hint)

    @property
    def heading(self) -> str:
        """The title, with the number of dangers."""
        if self.part is not Part.DANGERS:
            return self.part
        return several(sum(item.count for item in self.items), "danger")

    @property
    def is_brief(self) -> bool:
        """Whether each message has one line: they are many or long, and entries have them whole."""
        size = sum(len(item.subject) + len(item.text) for item in self.items)
        is_long = self.part is Part.DANGERS and size > _LONGEST_WHOLE
        return is_long or (self.part in _MOST and len(self.items) > _MOST_WHOLE)

    def in_one_line(self, item: Item, longest: int) -> str:
        """Return a message in one line. Its subject must not move an address out of it."""
        if not item.subject:
            return item.text
        if self.part is Part.NEW:
            where = brief(item.short, longest * 2 // 3)
            return shortened(f"{where}  {item.text}", longest)
        text = brief(item.text, len(item.text))
        first = len(re.split("[,;]", text)[0])
        space = first if first <= _FIRST_WORDS else _FIRST_WORDS // 2
        subject = cut_inside(item.short, longest - 2 - space)
        return shortened(f"{subject}: {text}", longest)

    def within_budget(self) -> tuple[Item, ...]:
        """Return the first messages, and one that counts the others by rule.

        Each rule has its share, and in that each domain, so that many of one do not hide another.
        """
        most = _MOST.get(self.part, len(self.items))
        if len(self.items) <= most:
            return self.items
        by_rule: dict[str, list[Item]] = defaultdict(list)
        for item in self.items:
            by_rule[item.code].append(item)
        numbered = [pair for items in by_rule.values() for pair in enumerate(_by_domain(items))]
        numbered.sort(key=lambda pair: pair[0])
        shown = {id(item) for _, item in numbered[:most]}
        rest = []
        for code, items in by_rule.items():
            others = [item for item in items if id(item) not in shown]
            groups = dict.fromkeys(printable(item.group) for item in others if item.group)
            names = listed((cut_inside(name, _LONGEST_WORD) for name in groups), _MOST_HOSTS)
            count = sum(item.count for item in others)
            rest += [f"{count:,} {code}{f' at {names}' if names else ''}"] if others else []
        total = sum(item.count for item in self.items if id(item) not in shown)
        kept = (item for item in self.items if id(item) in shown)
        return (*kept, Item(f"… {total:,} more: {', '.join(rest)}"))


def _by_domain(items: Sequence[Item]) -> list[Item]:
    """Return messages so that those about other domains come before the second of one domain."""
    seen: Counter[str] = Counter()
    numbers = []
    for item in items:
        domain = ".".join(item.group.split(":")[0].split(".")[-2:])
        seen[domain] += 1
        numbers.append(seen[domain])
    return [item for _, item in sorted(zip(numbers, items, strict=True), key=lambda pair: pair[0])]


def brief(text: str, longest: int) -> str:
    """Return a text for one line: without what was before, long words and the text cut inside."""
    words = _BEFORE.sub("", printable(text))
    words = _LONG_WORD.sub(lambda word: cut_inside(word[0], _LONGEST_WORD), words)
    return cut_inside(words, longest)


class Document(Struct, frozen=True):
    """A plan for readers: its head, its sections, and what is counted.

    `sections` are those with content. `applied` is the newest applied commit, `versions` that and
    what is planned, such as `1a2b3c4 (2 hours, 3 commits ago): 41 of 42 resources →
    feature@9f8e7d6`. `unmanaged` has a line for each unmanaged object.
    """

    plan: Plan
    environment: str
    applied: str
    versions: str
    id: str
    summary: str
    sections: tuple[Section, ...]
    unmanaged: tuple[str, ...]

    def section(self, part: Part) -> Section:
        """Return a section, an empty one if the plan has nothing for it."""
        return next((item for item in self.sections if item.part is part), Section(part))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries for a reviewer, the worst first, those with drift in between."""
        return _ordered(entry for section in self.sections for entry in section.entries)

    @property
    def unmanaged_count(self) -> str:
        """`1 unmanaged object`, "" without one."""
        return several(len(self.unmanaged), "unmanaged object") if self.unmanaged else ""


def plan_as_json(plan: Plan, _: RenderOptions = DEFAULTS) -> str:
    """Return a plan as public JSON."""
    return encode(plan).decode()


def document_of(plan: Plan, *, verbose: bool = False, brief: bool = False) -> Document:
    """Return the document of a plan. `verbose` has all fields, `brief` no changes."""
    changed = {change.address for change in plan.effective}
    about: dict[Address, list[str]] = {}
    notes = []
    for note in plan.notes:
        if note.about is not None and note.about in changed:
            about.setdefault(note.about, []).append(note.message)
        elif note.code not in (NO_INVENTORY, LOOSENED):
            notes.append(f"{note.about}: {note.message}" if note.about else note.message)
    changes = () if brief else plan.effective
    inside = plan.deleted_inside
    entries, shared = entries_of(changes, about, inside=inside, verbose=verbose)
    ordered, source = _ordered(entries), plan.source
    applied, head = applied_as_text(plan), _named(source.head_ref, source.head)
    head += " + uncommitted" if head and source.uncommitted else ""
    sections = (
        *_top([("", plan)]),
        *(Section(part, tuple(_refusals(plan, part))) for part in (Part.REFUSED, Part.LATER)),
        Section(Part.CHANGES, entries=tuple(entry for entry in ordered if not entry.drifted)),
        Section(Part.DRIFT, entries=tuple(entry for entry in ordered if entry.drifted)),
        Section(Part.NOTES, tuple(Item(note, Severity.INFO) for note in (*shared, *notes))),
    )
    return Document(
        plan=plan,
        environment=environment_as_text(source, full=verbose),
        applied=applied,
        versions=f"{applied} → {head}" if head else applied,
        id=f"plan {plan.plan_id[:_SHORT_ID]}",
        summary=summary(plan),
        sections=tuple(item for item in sections if item.items or item.entries),
        unmanaged=tuple(_unmanaged(plan)),
    )


def top_of(plans: Iterable[OfEnvironment[Plan]]) -> tuple[Section, ...]:
    """Return the sections that several environments have together, with content."""
    results = [(f"{item.environment}: ", item.result) for item in plans if item.result is not None]
    return tuple(section for section in _top(results) if section.items)


def _top(plans: Sequence[tuple[str, Plan]]) -> Iterator[Section]:
    """Yield dangers, what is loosened and what is new, the worst first, each after its prefix."""
    for part, items_of in zip(TOP, (_dangers, _loosened, _new), strict=True):
        items = [_named_item(item, prefix) for prefix, plan in plans for item in items_of(plan)]
        yield Section(part, tuple(sorted(items, key=attrgetter("rank"))))


def _named_item(item: Item, prefix: str) -> Item:
    if not item.subject:
        return replace(item, text=f"{prefix}{item.text}")
    group = f"{prefix.removesuffix(': ')} {item.group}".strip()
    return replace(
        item, subject=f"{prefix}{item.subject}", short=f"{prefix}{item.short}", group=group
    )


def _loosened(plan: Plan) -> Iterator[Item]:
    """Yield what the files loosen, and what leaves management by reason: protected ones first."""
    for note in plan.notes:
        if note.code == LOOSENED:
            yield Item(note.message, code=LOOSENED)
    groups: dict[str, list[str]] = {}
    leaving = sorted(plan.leaving, key=lambda item: not item.protected)
    for item in leaving:
        name = f"{item.address} (protected)" if item.protected else str(item.address)
        groups.setdefault(item.reason, []).append(name)
    most = max(_MOST_LEAVING, sum(item.protected for item in leaving))
    for reason, names in groups.items():
        text = f"not managed any more: {listed(names, most)}: {printable(reason)}"
        yield Item(text, code=LOOSENED)


def _ordered(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries, the worst first; without a difference in the order of the plan."""
    return tuple(sorted(entries, key=lambda entry: entry.order))


def _unmanaged(plan: Plan) -> Iterator[str]:
    for unmanaged in plan.unmanaged:
        parent = unmanaged.parent_name
        place = f" in {shortened(printable(parent))}" if parent else ""
        yield printable(f'{unmanaged.address} "{shortened(unmanaged.name)}"') + place


def environment_as_text(source: PlanSource, *, full: bool = False) -> str:
    """Return `production "Acme EU" · https://eu.posthog.com`, without a name the organization's id.

    Unless it is shown in full, an organization id that is a UUID is shortened.
    """
    name, where = source.environment, source.base_url
    if source.organization_name:
        name += f' "{shortened(source.organization_name, _LONGEST_NAME)}"'
    if full or not source.organization_name:
        where += f" · organization {source.organization if full else _short(source.organization)}"
    return printable(f"{name} · {where}")


def _short(organization: str) -> str:
    try:
        UUID(organization)
    except ValueError:
        return organization
    # Ids that were made in the same minute begin alike.
    return f"{organization[:_SHORT_ID]}…{organization[-4:]}"


def applied_as_text(plan: Plan) -> str:
    """Return `1a2b3c4 (2 hours, 3 commits ago): 41 of 42 resources`, or why nothing is known."""
    source = plan.source
    if source.applied is None:
        requested = any(Reason.REQUESTED in change.reasons for change in plan.effective)
        reasons = (note.message for note in plan.notes if note.code == NO_INVENTORY)
        return _NOT_USED if requested else next(reasons, "no inventory")
    counts = f"{source.recorded:,} of {several(source.declared, 'resource')}"
    return f"{applied_commit(source, plan.created_at)}: {counts}"


def applied_commit(source: PlanSource, now: str = "") -> str:
    """Return `1a2b3c4 (2 hours, 3 commits ago)`, the newest applied commit."""
    name = _named(source.head_ref if source.applied == source.head else None, source.applied)
    if source.applied == source.head:
        return name
    age = _age(source.applied_time or "", now)
    since = several(source.applied_commits, "commit") if source.applied_commits else ""
    past = ", ".join(filter(None, [age, since]))
    return f"{name} ({past} ago)" if past else name


def _named(ref: str | None, commit: str | None) -> str:
    short = printable((commit or "")[:_SHORT_COMMIT])
    branch = shortened(printable(ref or ""), _LONGEST_BRANCH)
    return f"{branch}@{short}" if branch and short else short


def _age(start: str, end: str) -> str:
    try:
        passed = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        # A saved plan may contain any text.
        return ""
    ages = (several(int(passed // size), unit) for size, unit in _AGES if passed >= size)
    return next(ages, "")


def _dangers(plan: Plan) -> Iterator[Item]:
    """Yield the dangers, equal ones as one: the deletion of projects is the worst.

    Each deletion of a project has its own, since its name says what is lost.
    """
    groups: dict[tuple[str, ...], list[tuple[Change, Consequence]]] = {}
    parents = containers(all_kinds())
    for change in plan.sending:
        own = str(change.address) if change.address.kind in parents else ""
        for item in change.consequences:
            if item.severity is Severity.DANGER:
                key = (item.rule, general(change, item), change.action, own)
                groups.setdefault(key, []).append((change, item))

    for members in groups.values():
        change, item = members[0]
        is_parent = change.action is Action.DELETE and change.address.kind in parents
        rank = not is_parent, *item.rank, not change.action.destructive
        yield replace(_danger(members), rank=rank)


def _danger(members: Sequence[tuple[Change, Consequence]]) -> Item:
    first, consequence = members[0]
    message, is_single = general(first, consequence), len(members) == 1
    short = str(first.address) if is_single else nouns(first.address.kind, len(members))
    keys = listed((printable(change.address.key) for change, _ in members), _MOST_IN_DANGER)
    subject = title(first) if is_single else f"{short}: {keys}"
    hosts = {item.host for item in first.new if item.sort is Novelty.SECRET}
    return Item(
        message.replace(ANY, short) if is_single else message,
        Severity.DANGER,
        f"{first.action.value} {subject}",
        f"{first.action.value} {shortened(short, _LONGEST_NAME)}",
        consequence.rule,
        first.at if is_single else None,
        group=" and ".join(sorted(hosts)),
        count=len(members),
        change=first,
    )


def _refusals(plan: Plan, part: Part) -> Iterator[Item]:
    """Yield what policy refuses, now or after the merge."""
    later = part is Part.LATER
    severity = Severity.WARNING if later else Severity.DANGER
    for refusal in plan.refusals:
        if refusal.after_merge is later:
            names = [str(address) for address in refusal.addresses]
            unnamed = any(name not in refusal.message for name in names)
            yield Item(
                refusal.message,
                severity,
                code=refusal.rule,
                at=refusal.at,
                hint=refusal.allow,
                names=listed(names, _MOST_IN_DANGER) if unnamed else "",
            )


def _new(plan: Plan) -> Iterator[Item]:
    """Yield what is new."""
    groups: dict[tuple[Novelty, str], list[tuple[Change, NewPlace]]] = {}
    for change in plan.effective:
        receivers = {item.host for item in change.new if item.sort is Novelty.SECRET}
        for item in change.new:
            # What gets a secret is a danger, and names the address.
            if item.sort is not Novelty.SECRET and item.shown not in receivers:
                place = item.text if item.sort is Novelty.OBJECT else in_ascii(item.text)
                what, place = with_names(item.what, change), with_names(place, change)
                shown = replace(item, text=place, what=what)
                groups.setdefault((item.sort, shown.shown), []).append((change, shown))
    yield from map(_new_item, groups.values())


def _new_item(members: Sequence[tuple[Change, NewPlace]]) -> Item:
    """Return equal items as one."""
    first, item = members[0]
    changes = list({change.address: change for change, _ in members}.values())
    before = listed(dict.fromkeys(other.before for _, other in members if other.before), 2)
    shown = replace(item, text=cut_inside(printable(item.text), _LONGEST_PLACE))
    what = printable(item.what)
    text = replace(shown, what=cut_inside(what, _LONGEST_TEXT)).shown
    text += f" (before: {cut_inside(printable(before), _LONGEST_BEFORE)})" if before else ""
    # The tables of a query decide; the entry has the rest.
    short = replace(shown, what=what.partition(": ")[0]).shown
    users = shortened(str(first.address), _LONGEST_BEFORE)
    if len(changes) > 1:
        names = (printable(change.address.key) for change in changes)
        keys = listed((shortened(name, _LONGEST_BEFORE) for name in names), _MOST_NAMES)
        users = f"{nouns(first.address.kind, len(changes))}: {keys}"
    details = [*_counts([part for _, other in members for part in other.inside])]
    details += ["begins to run again" if len(changes) == 1 else "begin to run again"] * item.again
    return Item(
        "; ".join([users, *details]),
        Severity.WARNING,
        text,
        short,
        f"new-{item.sort}",
        at=first.at if len(changes) == 1 else None,
        group=item.host,
        change=first,
        rank=(item.sort.rank,),
    )


def _counts(inside: Sequence[str]) -> Iterator[str]:
    """Yield how many parts of each sort are inside a place, if there are several, and a source."""
    words: dict[str, list[str]] = {}
    for part in dict.fromkeys(inside):
        word = part.partition(" ")[0]
        words.setdefault(word, []).append(part)
    for word, parts in words.items():
        if len(parts) > 1:
            yield f"{len(parts):,} {_PLURALS.get(word, f'{word}s')}"
        elif word not in INSIDE:
            yield shortened(printable(parts[0]), _LONGEST_BEFORE)


def project_of(change: Change) -> str:
    """Return the name of the project of a change, or of the changed object if it is one."""
    if change.address.kind in containers(all_kinds()):
        return printable(change.name)
    return parent_of(change) or "(organization)"
