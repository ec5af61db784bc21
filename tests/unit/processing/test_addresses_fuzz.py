"""Whatever the URL and whatever the DNS says: one error, and no private address is reached."""

from __future__ import annotations

import asyncio
import ipaddress
from urllib.parse import urlsplit

import httpx
from hypothesis import example, given
from hypothesis import strategies as st

from listen_finalization.processing.addresses import AddressRefusedError, parse_url
from listen_finalization.processing.network import NameResolutionError

from .networks import GLOBAL, PRIVATE, PUBLIC, Answers, Connector, guarded

ALPHABET = "abcdefx0123456789.:/@#?%[]\\-_ \t\uff11\u24db"
hosts = st.one_of(
    st.sampled_from(["localhost", "127.0.0.1", "example.com", "[::1]", "2130706433", PUBLIC]),
    st.ip_addresses().map(lambda one: f"[{one}]" if one.version == 6 else str(one)),
    st.text(ALPHABET, max_size=20),
    st.text(max_size=10),
)
urls = st.one_of(
    st.text(max_size=60),
    st.builds(
        "".join,
        st.tuples(
            st.sampled_from(["https://", "http://", "HTTPS://", "https:/", "ftp://"]),
            st.sampled_from(["", "", "a@", "a:b@"]),
            hosts,
            st.sampled_from(["", "", ":443", ":1", ":0", ":99999"]),
            st.sampled_from(["", "/", "/a?b=c", "?x"]) | st.text(ALPHABET, max_size=10),
        ),
    ),
)
answer_lists = st.lists(
    st.ip_addresses().map(str) | st.sampled_from([*PRIVATE, *GLOBAL]), max_size=4
)


@given(url=urls, answers=answer_lists, admit=st.booleans())
@example(url="https://example.com/", answers=["::ffff:127.0.0.1"], admit=True)
def test_no_url_leads_to_another_error_or_to_a_private_address(
    url: str, answers: list[str], admit: bool
) -> None:
    connector = Connector()
    network = guarded(Answers(answers), connector, admit_loopback=admit)

    async def go() -> None:
        endpoint = parse_url(url, admit_loopback=admit)
        await network.connect_tcp(endpoint.host, endpoint.port)

    try:
        asyncio.run(go())
    except (AddressRefusedError, NameResolutionError):
        assert connector.opened == []
    for opened in map(ipaddress.ip_address, connector.opened):
        loopback = opened.is_loopback and getattr(opened, "ipv4_mapped", None) is None
        nat64 = opened in ipaddress.ip_network("64:ff9b::/96")
        assert (admit and loopback) or nat64 or (opened.is_global and not opened.is_multicast)


@given(url=urls)
def test_every_parser_reads_the_same_host_from_an_admitted_url(url: str) -> None:
    try:
        endpoint = parse_url(url, admit_loopback=True)
    except AddressRefusedError:
        return
    other = urlsplit(url)
    assert (other.hostname, other.port or endpoint.port) == (endpoint.host, endpoint.port)
    third = httpx.URL(url)
    assert third.host == endpoint.host
    assert third.port in (None, endpoint.port)
