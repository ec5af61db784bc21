"""The composition root: settings become every part, wired once, started and stopped in order."""

from listen_finalization.stack.embedded import Stack

__all__ = ["Stack"]
