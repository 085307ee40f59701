"""Where to send: what a command was told, and the SDK's own variables where it was not. Nothing here loads the SDK.

The exporters read those variables themselves; this reads them to say where things go, and to refuse what is no URL
before anything is sent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from stopcause.errors import InputError
from stopcause.telemetry.values import Signal

_PROTOCOLS = {"http": "http", "http/protobuf": "http", "grpc": "grpc"}
_DEFAULT = {"http": "http://localhost:4318", "grpc": "http://localhost:4317"}
_OFF = "none"


class Target(NamedTuple):
    """A receiver. `endpoint` None leaves it to the variables; `headers` come on top of theirs."""

    protocol: str  # http or grpc
    endpoint: str | None
    headers: Mapping[str, str]

    @property
    def url(self) -> str:
        """The base of what is sent to."""
        return self.endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or _DEFAULT[self.protocol]

    def url_of(self, signal: Signal) -> str:
        """What one signal is sent to: over HTTP each has a path of its own."""
        own = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
        if self.endpoint is None and own:
            return own
        return f"{self.url.rstrip('/')}/v1/{signal}" if self.protocol == "http" else self.url


def target_of(protocol: str | None, endpoint: str | None, headers: Mapping[str, str]) -> Target:
    """The receiver that a command sends to.

    Raises:
        InputError: A protocol that this version does not send, or no URL.
    """
    named = protocol or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http"
    if named not in _PROTOCOLS:
        raise InputError("OTEL_EXPORTER_OTLP_PROTOCOL names none that is sent here; give --protocol http or grpc")
    target = Target(_PROTOCOLS[named], endpoint, headers)
    for signal in Signal:
        if not _is_url(target.url_of(signal)):
            named = "--endpoint" if endpoint else "OTEL_EXPORTER_OTLP_ENDPOINT"
            raise InputError(f"{named} is no URL; write one as {_DEFAULT[target.protocol]}")
    return target


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port, or brackets that are not an address's
        return False


def is_off(signal: Signal) -> bool:
    """Whether the SDK's own variable turns a signal off: some receivers take only one."""
    return os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower() == _OFF


def shown(url: str) -> str:
    """A URL without what may open something: no user, no password, no query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
