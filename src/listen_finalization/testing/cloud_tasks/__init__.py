"""A Cloud Tasks server with a queue engine of its own, for the real client (`google` extra)."""

from listen_finalization.testing.cloud_tasks.faults import Fault, FaultError, FaultKind, Faults
from listen_finalization.testing.cloud_tasks.refusals import CallRefusedError, Code
from listen_finalization.testing.cloud_tasks.server import CloudTasksServer, PortUnavailableError

__all__ = [
    "CallRefusedError",
    "CloudTasksServer",
    "Code",
    "Fault",
    "FaultError",
    "FaultKind",
    "Faults",
    "PortUnavailableError",
]
