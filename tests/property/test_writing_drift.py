"""`drift --write` in any workspace: then the plan has what is named as left out, and no more."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from reconciler.model.kind import Action
from tests.conftest import LONG
from tests.property.test_promoting import comments, resolved, workspaces
from tests.support.drifting import Applied
from tests.support.emulator import RunningEmulator

SECRETS = {"KEY": "an-access-key", "OTHER": "another-access-key"}
OTHERS = ("two", "three")
live_changes = st.fixed_dictionaries(
    {},
    optional={
        "interval": st.sampled_from(["hour", "day", "week"]),
        "paused": st.booleans(),
        "end_at": st.sampled_from([None, "2029-01-01T00:00:00Z"]),
        "prefix": st.sampled_from(["c/", "${x}: #", ""]),
    },
)


def change(applied: Applied, name: str, fields: dict[str, Any]) -> None:
    """Change a live export, its prefix only if its destination has one."""
    prefix = fields.pop("prefix", None)
    destination = applied.live(name)["destination"]
    if prefix is not None and "prefix" in destination["config"]:
        config = {**destination["config"], "prefix": prefix}
        fields["destination"] = {"type": destination["type"], "config": config}
    applied.change(name, **fields)


@settings(
    # An example takes some seconds: an apply, two runs of `drift --write`, and a plan.
    max_examples=100 if LONG else 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
@given(files=workspaces(), data=st.data())
def test_after_a_write_the_plan_has_only_what_was_left_out(
    emulator: RunningEmulator, files: dict[str, str], data: st.DataObject
) -> None:
    emulator.reset()
    organization = f"/api/organizations/{emulator.organization}/projects/"
    emulator.call("POST", organization, {"name": "Live"}).raise_for_status()
    files["exports.yaml"] = files["exports.yaml"].replace("id: 7", "name: Live")
    with TemporaryDirectory() as name:
        applied = Applied.of(Path(name, "w"), emulator, files, "one", **SECRETS)
        before = {other: resolved(applied.folder, other) for other in OTHERS}
        for export in sorted(emulator.exports()):
            change(applied, export, data.draw(live_changes, export))
        pulled = applied.pull(environment="one").report
        text = applied.text("exports.yaml")
        assert comments(text) == comments(files["exports.yaml"])
        assert {other: resolved(applied.folder, other) for other in OTHERS} == before
        for item in pulled.left_out:
            event(re.sub(r"^.*: ", "", item.reason))
            assert re.match(r"(exports|reconciler)\.yaml:\d+:\d+: cannot edit", item.reason)
        event(f"{min(len(pulled.placed), 3)} placed")
        planned = applied.plan("one")
        assert {
            (change.address, field.path)
            for change in planned.changes
            if change.action is not Action.NO_OP
            for field in change.fields
        } == {(item.address, item.path) for item in pulled.left_out}
        again = applied.pull(environment="one").report
        assert (again.placed, applied.text("exports.yaml")) == ((), text)
        assert again.left_out == pulled.left_out
