"""What every probe is given."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from listen_finalization.operate.deployed import Deployed
from listen_finalization.operate.google import Google
from listen_finalization.settings import Settings


@dataclass(frozen=True, slots=True)
class Reach:
    """Files, settings and clients. `deadline` is in seconds and is kept by the caller."""

    deployed: Deployed
    settings: Settings
    client: httpx.AsyncClient
    google: Google
    deadline: float
