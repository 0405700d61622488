"""How a run is asked to stop: requests in flight are finished, no new ones are started."""

from __future__ import annotations


class StopRequest:
    """Set once, from a signal handler or another task; never unset."""

    def __init__(self) -> None:
        self._asked = False

    def ask(self) -> None:
        """Ask for a stop."""
        self._asked = True

    @property
    def asked(self) -> bool:
        """Whether a stop was asked for."""
        return self._asked
