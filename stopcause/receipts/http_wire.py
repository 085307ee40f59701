"""One kept connection to one address, over which bodies are posted. The standard library only.

It is kept open between requests, goes through the proxy that the environment names, and follows no redirect. What the
receiver answers beyond status and `Retry-After` is read away.
"""

from __future__ import annotations

import base64
import encodings.idna  # noqa: F401 - what looks up a host would import it on the writer's thread, perhaps in a fork's midst
import math
import re
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from stopcause import __version__
from stopcause.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_READ = 64 * 1024  # of an answer; a longer one costs the connection
_PORTS = {"http": 80, "https": 443}
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, a token
_HEADER_TEXT = re.compile(r"[\t -~\u00a0-\u00ff]*")  # what latin-1 can send, on one line
_ADDRESS = re.compile(r"https?://[!-~]+")
_EXAMPLE = "https://stopcause.example/v1/records"


class Answer(NamedTuple):
    """What came back."""

    status: int
    retry_after: str | None


class Wire:
    """The way to one address."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        """No connection yet.

        Raises:
            ConfigurationError: No address, no header, or no time; the message does not quote it.
        """
        self._url = _checked_url(url)
        self._headers = {
            "user-agent": f"stopcause/{__version__}",
            **_checked_headers(headers),
            "content-type": "application/x-ndjson",
        }
        self._timeout_s = _checked_seconds(timeout_s)
        self._target = self._url._replace(scheme="", netloc="", fragment="").geturl() or "/"
        self._connection: HTTPConnection | None = None

    def post(self, body: bytes) -> Answer:
        """One request, waited for.

        Raises:
            OSError: Nobody is there, or it took too long.
            http.client.HTTPException: What is there does not speak HTTP.
        """
        is_kept = self._connection is not None and self._connection.sock is not None
        try:
            return self._try(body)
        except OSError as error:
            if not is_kept or isinstance(error, TimeoutError):
                raise
        return self._try(body)  # a connection that was idle had been closed over there: nothing is wrong yet

    def _try(self, body: bytes) -> Answer:
        if self._connection is None:
            self._connection = self._connect()
        try:
            self._connection.request("POST", self._target, body, self._headers)
            response = self._connection.getresponse()
        except BaseException:
            self.close()  # in the middle of a request it serves for no other one
            raise
        self._read_away(response)
        return Answer(response.status, response.headers.get("retry-after"))

    def _read_away(self, response: HTTPResponse) -> None:
        """So that the connection serves again. Whatever happens here, the status has said all that counts."""
        try:
            response.read(_MOST_READ)
            is_read = response.isclosed()
        except (OSError, HTTPException):
            is_read = False
        if not is_read:
            self.close()

    def close(self) -> None:
        """Closes the connection. The next request opens one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> HTTPConnection:
        """Not open yet, and silent: a process that debugs its own HTTP would print our headers too."""
        host, port = str(self._url.hostname), self._url.port or _PORTS[self._url.scheme]
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        proxy = None if proxy_bypass(host) else getproxies().get(self._url.scheme)
        if proxy is None:
            made = kind(host, port, timeout=self._timeout_s)
        else:
            made = self._through(urlsplit(proxy if "://" in proxy else f"http://{proxy}"), kind, host, port)
        made.set_debuglevel(0)
        return made

    def _through(self, proxy: SplitResult, kind: type[HTTPConnection], host: str, port: int) -> HTTPConnection:
        """By way of a proxy: a tunnel for https; for http the proxy is asked for the whole address."""
        made = kind(str(proxy.hostname), proxy.port or _PORTS["http"], timeout=self._timeout_s)
        who = _credentials(proxy)
        if self._url.scheme == "https":
            made.set_tunnel(host, port, who)
        else:
            self._target = self._url._replace(fragment="").geturl()
            self._headers |= who
        return made


def _credentials(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"proxy-authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _checked_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url) if _ADDRESS.fullmatch(url) else None
        fits = parts is not None and parts.hostname and parts.port != 0
    except (ValueError, TypeError):  # no port, brackets that are no address's, no text
        parts, fits = None, False
    if parts is None or not fits:
        raise ConfigurationError(f"HttpSink: url must be where records go, as {_EXAMPLE}")
    if parts.username is not None:
        raise ConfigurationError("HttpSink: url must be without a name or password; give them in headers")
    return parts


def _checked_headers(headers: Mapping[Any, Any]) -> dict[str, str]:
    for name, text in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ConfigurationError("HttpSink: headers must have names that HTTP takes")
        if not isinstance(text, str) or not _HEADER_TEXT.fullmatch(text):
            raise ConfigurationError(f"HttpSink: headers.{name.lower()} must be one line of plain text")
    return {name.lower(): text for name, text in headers.items()}


def _checked_seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ConfigurationError("HttpSink: timeout_s must be a number of seconds above zero")
    return float(value)
