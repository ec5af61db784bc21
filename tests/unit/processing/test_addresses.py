"""The SSRF guard: which URLs pass, which addresses are connected to, and when that is decided."""

from __future__ import annotations

import ipaddress
import socket

import httpcore
import pytest

from listen_finalization.processing import network
from listen_finalization.processing.addresses import AddressRefusedError, judge, parse_url
from listen_finalization.processing.network import NameResolutionError, SystemResolver

from .networks import GLOBAL, PRIVATE, PUBLIC, Answers, Connector, guarded

NO_ADDRESS = ["", "x", "127.1", "0177.0.0.1", "2606:4700::1%eth0", "fe80::1%1", "8.8.8.8 "]

SPELLINGS = [
    "",
    "example.com",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "http://example.com/",
    "https:/example.com",
    "https:///example.com",
    "https://",
    "https:///",
    "https://:443/",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:999999/",
    "https://example.com:/",
    "https://example.com:-1/",
    "https://example.com:\uff14\uff14\uff13/",
    "https://example.com./",
    "https://example..com/",
    "https://.example.com/",
    "https://-example.com/",
    "https://user@example.com/",
    "https://user:word@example.com/",
    "https://example.com@127.0.0.1/",
    "https://example.com\\@127.0.0.1/",
    "https://example.com#@127.0.0.1/",
    "https://example.com/#part",
    "https://example.com/\r\nHost: other",
    "https://example.com/ x",
    " https://example.com/",
    "https://example.com/\n",
    "https://exa\tmple.com/",
    "https://example.com/%zz",
    "https://example.com/\u00fc",
    "https://ex%61mple.com/",
    "https://" + "a" * 64 + ".com/",
    "https://" + "a." * 127 + "com/",
    "https://example.com/" + "a" * 2_048,
    "https://localhost./",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://017700000001/",
    "https://0x7f.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.1./",
    "https://127.0.0.0x1/",
    "https://1.1.1.256/",
    "https://1.1.1.1.1/",
    "https://metadata/",
    "https://metadata.google.internal./",
    "https://example.123/",
    "https://example.0x1/",
    "https://[::1%25eth0]/",
    "https://[fe80::1%25lo]/",
    "https://[2606:4700:4700::1111/",
    "https://2606:4700:4700::1111/",
    "https://[8.8.8.8]/",
    "https://[example.com]/",
    "https://[v1.x]/",
    "https://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3/",
    "https://\u24dbocalhost/",
    "https://\uff11\uff12\uff17.\uff10.\uff10.\uff11/",
    "https://127\u30020\u30020\u30021/",
    "https://b\u00fccher.example/",
]
LOOPBACK_URLS = [
    "http://localhost:8080/hook",
    "http://LOCALHOST/",
    "http://127.0.0.1:8080/hook",
    "http://127.9.9.9/",
    "https://127.0.0.1/",
    "http://[::1]:8080/",
    "https://localhost/",
]


def url_of(address: str) -> str:
    return f"https://[{address}]/" if ":" in address else f"https://{address}/"


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_outside_the_public_network_is_refused(address: str) -> None:
    with pytest.raises(AddressRefusedError):
        judge(address, admit_loopback=False)
    with pytest.raises(AddressRefusedError):
        parse_url(url_of(address))


@pytest.mark.parametrize("address", GLOBAL)
def test_a_public_address_is_admitted(address: str) -> None:
    assert judge(address, admit_loopback=False) == ipaddress.ip_address(address)
    assert parse_url(url_of(address)).host == address


@pytest.mark.parametrize("text", NO_ADDRESS)
def test_an_answer_that_is_no_canonical_address_is_refused(text: str) -> None:
    with pytest.raises(AddressRefusedError):
        judge(text, admit_loopback=True)


@pytest.mark.parametrize("address", PRIVATE)
def test_admitting_loopback_admits_nothing_else(address: str) -> None:
    loopback = address == "::1" or address.startswith("127.")
    if loopback:
        assert judge(address, admit_loopback=True)
        return
    with pytest.raises(AddressRefusedError):
        judge(address, admit_loopback=True)
    with pytest.raises(AddressRefusedError):
        parse_url(url_of(address), admit_loopback=True)


@pytest.mark.parametrize("admit", [False, True])
@pytest.mark.parametrize("url", SPELLINGS)
def test_a_url_of_another_spelling_is_refused_in_every_mode(url: str, admit: bool) -> None:
    with pytest.raises(AddressRefusedError) as refused:
        parse_url(url, admit_loopback=admit)
    assert refused.value.args == (AddressRefusedError.__doc__,)
    assert refused.value.__context__ is None


@pytest.mark.parametrize("url", LOOPBACK_URLS)
def test_loopback_passes_only_where_it_is_admitted(url: str) -> None:
    assert parse_url(url, admit_loopback=True).host
    with pytest.raises(AddressRefusedError):
        parse_url(url)


def test_plain_http_is_for_loopback_alone() -> None:
    for url in ("http://example.com/", f"http://{PUBLIC}/", "http://[2606:4700:4700::1111]/"):
        with pytest.raises(AddressRefusedError):
            parse_url(url, admit_loopback=True)


@pytest.mark.parametrize(
    ("url", "authority", "target"),
    [
        ("https://example.com", "example.com", "/"),
        ("HTTPS://Example.COM:443/Path", "example.com", "/Path"),
        ("https://example.com:8443/a/b?c=d&e=%20", "example.com:8443", "/a/b?c=d&e=%20"),
        ("https://example.com?c=d", "example.com", "/?c=d"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", "/"),
        ("https://my_hook.example.com/@me", "my_hook.example.com", "/@me"),
        ("https://[2606:4700:4700::1111]:8443/", "[2606:4700:4700::1111]:8443", "/"),
    ],
)
def test_the_host_header_is_the_host_that_was_given(url: str, authority: str, target: str) -> None:
    endpoint = parse_url(url)
    assert (endpoint.authority, endpoint.target) == (authority, target)


def test_the_parts_of_a_url_are_in_no_repr() -> None:
    assert repr(parse_url("https://canary.example:8443/canary")) == "Endpoint(scheme='https')"


async def test_the_connection_goes_to_the_answer_that_was_judged() -> None:
    answers, connector = Answers([PUBLIC], ["127.0.0.1"]), Connector()

    await guarded(answers, connector).connect_tcp("rebind.example", 443)

    assert answers.asked == ["rebind.example"]
    assert connector.opened == [PUBLIC]


async def test_a_name_that_turns_private_is_refused_at_the_next_connect() -> None:
    answers, connector = Answers([PUBLIC], ["169.254.169.254"]), Connector()
    network = guarded(answers, connector)
    await network.connect_tcp("rebind.example", 443)

    with pytest.raises(AddressRefusedError):
        await network.connect_tcp("rebind.example", 443)

    assert connector.opened == [PUBLIC]


@pytest.mark.parametrize("private", PRIVATE)
async def test_one_private_answer_refuses_the_name_whatever_its_place(private: str) -> None:
    many = [f"8.8.8.{number}" for number in range(20)]
    for answers in ([private], [PUBLIC, private], [private, PUBLIC], [*many, private]):
        connector = Connector()
        with pytest.raises(AddressRefusedError):
            await guarded(Answers(answers), connector).connect_tcp("mixed.example", 443)
        assert connector.opened == []


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "10.0.0.1", "fe80::1%lo"])
async def test_the_network_refuses_private_hosts_even_when_no_url_was_judged(host: str) -> None:
    connector = Connector()
    with pytest.raises(AddressRefusedError):
        await guarded(Answers(["127.0.0.1"]), connector).connect_tcp(host, 80)
    assert connector.opened == []


async def test_localhost_never_depends_on_a_resolver() -> None:
    answers, connector = Answers([PUBLIC]), Connector(refuse=1)

    await guarded(answers, connector, admit_loopback=True).connect_tcp("localhost", 80)

    assert connector.opened == ["127.0.0.1", "::1"]
    assert answers.asked == []


async def test_the_next_address_is_tried_when_one_refuses() -> None:
    connector = Connector(refuse=1)
    await guarded(Answers(GLOBAL), connector).connect_tcp("many.example", 443)
    assert connector.opened == GLOBAL[:2]


async def test_the_next_address_is_tried_when_one_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "ATTEMPT_SECONDS", 0.05)
    connector = Connector(hang=2)
    await guarded(Answers(GLOBAL), connector).connect_tcp("many.example", 443)
    assert connector.opened == GLOBAL[:3]


async def test_the_number_of_tried_addresses_is_bounded() -> None:
    connector = Connector(refuse=100)
    many = [f"8.8.8.{number}" for number in range(50)]
    with pytest.raises(httpcore.ConnectError):
        await guarded(Answers(many), connector).connect_tcp("many.example", 443)
    assert connector.opened == many[:4]


async def test_a_name_without_addresses_is_not_resolved() -> None:
    with pytest.raises(NameResolutionError):
        await guarded(Answers([]), Connector()).connect_tcp("none.example", 443)


async def test_the_system_resolver_gives_every_address_once() -> None:
    answers = await SystemResolver()("localhost", 80)
    assert answers
    assert len(set(answers)) == len(answers)
    assert all(ipaddress.ip_address(answer).is_loopback for answer in answers)


@pytest.mark.parametrize("fault", [socket.gaierror(), OSError(), UnicodeError()])
async def test_a_failed_lookup_is_one_error_without_its_cause(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(NameResolutionError) as refused:
        await SystemResolver()("none.example", 443)
    assert refused.value.__context__ is None
