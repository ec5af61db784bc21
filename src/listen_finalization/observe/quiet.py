"""Keeping what client libraries would write of requests out of every log."""

from __future__ import annotations

import logging
from types import ModuleType


def keep_requests_out_of_logs(*modules: ModuleType) -> None:
    """Stop the loggers of a client's modules from writing whole requests, whoever asks for them.

    Google's clients do so at DEBUG, which GOOGLE_SDK_PYTHON_LOGGING_SCOPE sets, with a handler
    that google-api-core puts on them itself, past every formatter of ours.
    """
    for module in modules:
        logging.getLogger(module.__name__).setLevel(logging.INFO)
