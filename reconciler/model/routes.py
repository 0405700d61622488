"""The routes of a kind: the one module that fills in the path templates of `Kind.paths`."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.kind import Kind
from reconciler.model.operation import Operation
from reconciler.model.request import Query, Repeat, Request
from reconciler.model.values import JSONObject


class Routes(Struct, frozen=True):
    """Paths and requests for the objects of one kind, below one parent.

    Without `parent_id` they are those of the whole organization, where the kind has such paths.
    """

    kind: Kind
    organization: str
    parent_id: str | None = None

    @property
    def collection(self) -> str:
        """The path that lists objects and creates them."""
        paths = self.kind.paths
        survey = paths.survey if self.parent_id is None else None
        template = survey or paths.collection
        return template.format(organization=self.organization, parent=self.parent_id)

    def read(self, live_id: str) -> Request:
        """Return the request that reads one object."""
        return Request("GET", self._object(live_id), Repeat.SAFE)

    def create(self, body: JSONObject) -> Request:
        """Return the request that creates an object. A repeat may create a second one."""
        return Request("POST", self.collection, Repeat.AFTER_LOOKING, body=body)

    def patch(self, live_id: str, body: JSONObject) -> Request:
        """Return the request that sets fields. A repeat has the same effect."""
        return Request("PATCH", self._object(live_id), Repeat.SAFE, body=body)

    def delete(self, live_id: str) -> Request:
        """Return the request that deletes an object. A repeat is a 404."""
        return Request("DELETE", self._object(live_id), Repeat.SAFE)

    def action(
        self, live_id: str, name: str, *, body: JSONObject | None = None, repeat: Repeat
    ) -> Request:
        """Return the request of an action on an object, such as `pause`."""
        return Request("POST", f"{self._object(live_id)}{name}/", repeat, body=body or {})

    def operation(
        self,
        operation: Operation,
        live_id: str = "",
        *,
        body: JSONObject | None = None,
        query: Query | None = None,
        **names: str,
    ) -> Request:
        """Return the request of an operation. `names` are ids that its path contains."""
        path = operation.path.format(
            organization=self.organization, parent=self.parent_id, id=live_id, **names
        )
        if not path.startswith("/"):
            path = f"{self._object(live_id)}{path}"
        sent = (body or {}) if operation.method != "GET" else None
        return Request(
            operation.method,
            path,
            operation.repeat,
            body=sent,
            query={**operation.query, **(query or {})},
        )

    def _object(self, live_id: str) -> str:
        return f"{self.collection}{live_id}/"
