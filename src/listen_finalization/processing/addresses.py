"""Where a delivery may go: public https receivers, and never into a private network (SSRF).

Pure judgement, without I/O: `parse_url` on the spelling, `judge` on an address that a name was
resolved to. `network.GuardedNetwork` asks again at the moment of connecting.

`admit_loopback` (embedded mode only) admits exactly 127.0.0.0/8 and ::1, and nothing else that is
private.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

from listen_finalization.errors import ListenFinalizationError

MAX_URL = 2_048

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS = {"https": 443, "http": 80}
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9a-f.]*:[0-9a-f:.]{1,44}\]|[a-z0-9._-]{1,253})"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<target>(?:[/?](?:[a-z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?)",
    re.IGNORECASE | re.ASCII,
)
_NAME = re.compile(
    r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
)
LOCALHOST = "localhost"

# IANA special-purpose registries (RFC 6890), where `ipaddress.is_global` of Python 3.11 is silent:
# protocol assignments, 6to4 relays, and the host service of Azure, which is public by number only.
_REFUSED_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")
)
# Within 2000::/3: protocol assignments with Teredo, documentation, 6to4.
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    ipaddress.IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Spelled out, because later versions of Python count ::ffff:127.0.0.1 as loopback too.
_LOOPBACK_V4 = ipaddress.IPv4Network("127.0.0.0/8")
_LOOPBACK_V6 = ipaddress.IPv6Address("::1")


class AddressRefusedError(ListenFinalizationError):
    """The address of the destination is not one that deliveries may go to."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A URL that passed `parse_url`, in parts; none of them is in the repr.

    `host` is lower case and without brackets; `target` is path and query and starts with a slash.
    """

    scheme: str
    host: str = field(repr=False)
    port: int = field(repr=False)
    target: str = field(repr=False)

    @property
    def authority(self) -> str:
        """The `Host` header: brackets around IPv6, the port unless it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_url(url: str, *, admit_loopback: bool = False) -> Endpoint:
    """Return the parts of a URL that a delivery may be sent to, judged by its spelling alone.

    https; http only to a receiver spelled as loopback (`localhost`, 127.0.0.0/8, `[::1]`) where
    that is admitted. At most 2048 ASCII characters, any port from 1, no user name, no fragment. A
    host is an admitted address in its one canonical spelling, or a DNS name with a dot, without a
    trailing one, whose last label starts with a letter; an international name is given as `xn--`.
    Raises `AddressRefusedError` and nothing else, for any text.
    """
    match = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if match is None:
        raise AddressRefusedError
    scheme, host = match["scheme"].lower(), match["host"].lower().strip("[]")
    port = int(match["port"] or _PORTS[scheme])
    literal = parse_literal(host)
    loopback = host == LOCALHOST or _is_loopback(literal)
    named = _NAME.fullmatch(host) is not None
    admitted = admit_loopback if loopback else named or _is_public(literal)
    if not admitted or (scheme == "http" and not loopback) or not 0 < port < 65_536:
        raise AddressRefusedError
    target = match["target"]
    return Endpoint(scheme, host, port, target if target.startswith("/") else "/" + target)


def judge(answer: str, *, admit_loopback: bool) -> Address:
    """Return the address that `answer` spells, if a connection to it may be opened.

    Admitted is global unicast: not private, loopback, link-local, shared (100.64.0.0/10),
    multicast, reserved, documentation or unspecified; of IPv6 only 2000::/3, without the forms
    that carry an IPv4 address (mapped, compatible, 6to4, Teredo), and NAT64 by its well-known
    prefix where the address inside is admitted. Raises `AddressRefusedError`.
    """
    address = parse_literal(answer)
    admitted = admit_loopback if _is_loopback(address) else _is_public(address)
    if address is None or not admitted:
        raise AddressRefusedError
    return address


def parse_literal(text: str) -> Address | None:
    """Read an address in its canonical spelling: no short, octal, hex or decimal form, no zone."""
    if "%" in text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_loopback(address: Address | None) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in _LOOPBACK_V4
    return address == _LOOPBACK_V6


def _is_public(address: Address | None) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        return address in _UNICAST_V6 and not any(address in network for network in _REFUSED_V6)
    if address is None or address.is_multicast:
        return False
    return address.is_global and not any(address in network for network in _REFUSED_V4)
