"""What a target receives: headers, bodies, attempts; and what its answers lead to."""

from __future__ import annotations

import datetime as dt

import httpx
import jwt
import pytest
from google.cloud import tasks_v2

from listen_finalization.auth.keys import HttpKeySource
from listen_finalization.auth.outcome import Refused, Verified
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.verifier import TokenVerifier

from .at_hand import QUEUE, Bench, bench, retry

ACCOUNT = "invoker@demo.iam.gserviceaccount.com"
AUDIENCE = "https://worker.example/run"
SERVICE = ("queuename", "taskname", "taskretrycount", "taskexecutioncount", "tasketa")


async def configured(at: Bench, **fields: float) -> None:
    queue = tasks_v2.Queue(name=QUEUE, retry_config=retry(**fields))
    await at.client.update_queue(queue=queue)


async def test_the_first_attempt_carries_the_request_and_the_service_headers() -> None:
    async with bench() as at:
        at.clock.advance(0.25)
        await at.create(
            "/run?a=b",
            "named",
            headers={"Content-Type": "application/json", "X-Own": "v"},
            body=b'{"x":"\xc3\xa9"}',
        )
        (got,) = await at.receiver.arrived(1)
        assert (got.method, got.path, got.body) == ("POST", "/run?a=b", b'{"x":"\xc3\xa9"}')
        assert got.headers == {
            "host": at.receiver.url.removeprefix("http://"),
            "content-length": "10",
            "content-type": "application/json",
            "x-own": "v",
            "user-agent": "Google-Cloud-Tasks",
            "x-cloudtasks-queuename": "jobs",
            "x-cloudtasks-taskname": "named",
            "x-cloudtasks-taskretrycount": "0",
            "x-cloudtasks-taskexecutioncount": "0",
            "x-cloudtasks-tasketa": "1760000000.250000",
        }


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_every_method_is_sent(method: str) -> None:
    async with bench() as at:
        await at.create(name="t", http_method=method)
        (got,) = await at.receiver.arrived(1)
        assert got.method == method
        await at.ended(f"{QUEUE}/tasks/t")


async def test_a_task_cannot_forge_what_the_queue_says() -> None:
    async with bench() as at:
        forged = {
            "X-CloudTasks-TaskRetryCount": "99",
            "x-google-user": "root",
            "X-AppEngine-QueueName": "other",
            "User-Agent": "curl",
            "Host": "elsewhere",
            "Authorization": "Bearer forged",
        }
        await at.create(
            headers=forged, oidc_token=tasks_v2.OidcToken(service_account_email=ACCOUNT)
        )
        (got,) = await at.receiver.arrived(1)
        assert got.service("taskretrycount") == "0"
        assert got.headers["user-agent"] == "Google-Cloud-Tasks"
        assert got.headers["host"] != "elsewhere"
        assert got.headers["authorization"].startswith("Bearer ey")
        assert len(got.names) == len(set(got.names)), "a header was sent twice"
        assert not {"x-google-user", "x-appengine-queuename"} & got.headers.keys()


async def test_a_retry_tells_counts_and_the_answer_before_and_keeps_name_and_body() -> None:
    async with bench() as at:
        await configured(at, max_attempts=5, min_backoff=10, max_backoff=20)
        at.receiver.statuses.extend([503, 404])
        await at.create(name="t", body=b"same")
        await at.receiver.arrived(1)
        await _failed(at, 1)
        at.advance(10)
        await at.receiver.arrived(2)
        await _failed(at, 2)
        at.advance(20)
        got = await at.receiver.arrived(3)
        await at.ended(f"{QUEUE}/tasks/t")
        assert [[one.service(name) for name in SERVICE] for one in got] == [
            ["jobs", "t", "0", "0", "1760000000.000000"],
            ["jobs", "t", "1", "1", "1760000010.000000"],
            ["jobs", "t", "2", "2", "1760000030.000000"],
        ]
        before = [
            (one.service("taskpreviousresponse"), one.service("taskretryreason")) for one in got
        ]
        assert before == [(None, None), ("503", "HTTP status 503"), ("404", "HTTP status 404")]
        assert [one.body for one in got] == [b"same"] * 3


async def _failed(at: Bench, responses: int, name: str = "t") -> tasks_v2.Task:
    """Wait until the queue has noted that many answers."""
    while True:
        task = await at.client.get_task(name=f"{QUEUE}/tasks/{name}")
        if task.response_count == responses:
            return task


async def test_the_attempts_show_on_the_task() -> None:
    async with bench() as at:
        await configured(at, min_backoff=10)
        at.receiver.statuses.append(500)
        await at.create(name="t")
        failed = await _failed(at, 1)
        assert (failed.dispatch_count, failed.response_count) == (1, 1)
        assert failed.first_attempt == tasks_v2.Attempt(dispatch_time=at.moment())
        last = failed.last_attempt
        assert (last.schedule_time, last.dispatch_time, last.response_time) == (at.moment(),) * 3
        assert last.response_status.message == "HTTP status code 500"
        assert failed.schedule_time == at.moment(10)


async def test_a_redirect_is_a_failure_and_is_not_followed() -> None:
    async with bench() as at:
        at.receiver.statuses.append(302)
        at.receiver.headers["Location"] = at.receiver.url + "/elsewhere"
        await at.create(name="t")
        await _failed(at, 1)
        assert [one.path for one in at.receiver.requests] == ["/"]


async def test_a_target_that_nobody_serves_costs_attempts_and_ends_the_task() -> None:
    async with bench() as at:
        await configured(at, max_attempts=1)
        http = tasks_v2.HttpRequest(url="http://127.0.0.1:1/")
        task = tasks_v2.Task(name=f"{QUEUE}/tasks/t", http_request=http)
        await at.client.create_task(parent=QUEUE, task=task)
        await at.ended(f"{QUEUE}/tasks/t")


async def test_an_attempt_is_cut_at_its_deadline_and_made_again_while_the_target_still_works() -> (
    None
):
    async with bench() as at:
        await configured(at, min_backoff=1)
        at.receiver.hold.clear()
        await at.create(name="t", dispatch_deadline=dt.timedelta(seconds=1800))
        await at.receiver.arrived(1)
        at.advance(1799)
        assert (await at.client.get_task(name=f"{QUEUE}/tasks/t")).dispatch_count == 1
        at.advance(1)
        while not at.receiver.cut:
            await at.client.get_queue(name=QUEUE)
        cut = await at.client.get_task(name=f"{QUEUE}/tasks/t")
        assert (cut.dispatch_count, cut.response_count) == (1, 0)
        assert cut.last_attempt.response_status.code == 4
        at.receiver.hold.set()
        at.advance(1)
        _, again = await at.receiver.arrived(2)
        assert again.service("taskretrycount") == "1"
        assert again.service("taskexecutioncount") == "0"
        assert again.service("taskpreviousresponse") is None
        assert again.service("taskretryreason") == "DEADLINE_EXCEEDED"


async def test_nothing_is_sent_before_its_time() -> None:
    async with bench() as at:
        await at.create("/later", "later", schedule_time=at.moment(60))
        at.advance(59.9)
        await at.create("/now", "now")
        await at.receiver.arrived(1)
        at.advance(0.1)
        got = await at.receiver.arrived(2)
        assert [one.path for one in got] == ["/now", "/later"]


async def test_no_more_are_sent_at_once_than_the_queue_allows() -> None:
    async with bench() as at:
        limited = tasks_v2.RateLimits(max_concurrent_dispatches=3)
        await at.client.update_queue(queue=tasks_v2.Queue(name=QUEUE, rate_limits=limited))
        at.receiver.hold.clear()
        for _ in range(9):
            await at.create()
        await at.receiver.arrived(3)
        at.receiver.hold.set()
        await at.receiver.arrived(9)
        assert at.receiver.most == 3


async def test_a_token_passes_the_verifier_of_the_product_as_one_of_google_does() -> None:
    policy = TokenPolicy.google(PolicyName.TASKS, AUDIENCE, email=ACCOUNT)
    async with bench() as at, httpx.AsyncClient() as http:
        keys = HttpKeySource(at.server.keys_url, http)
        verifier = TokenVerifier(policy, keys)
        token = tasks_v2.OidcToken(service_account_email=ACCOUNT, audience=AUDIENCE)
        await at.create(oidc_token=token)
        (got,) = await at.receiver.arrived(1)
        judged = await verifier.verify([got.headers["authorization"]])
        assert isinstance(judged, Verified) and judged.email == ACCOUNT
        other = TokenPolicy.google(PolicyName.TASKS, AUDIENCE, email="other@demo.example")
        refused = await TokenVerifier(other, keys).verify([got.headers["authorization"]])
        assert isinstance(refused, Refused)
        await keys.aclose()


async def test_an_audience_that_is_not_given_is_the_url() -> None:
    async with bench() as at:
        await at.create("/run", oidc_token=tasks_v2.OidcToken(service_account_email=ACCOUNT))
        (got,) = await at.receiver.arrived(1)
        token = got.headers["authorization"].removeprefix("Bearer ")
        claims = jwt.decode(token, options={"verify_signature": False})
        assert claims["aud"] == at.receiver.url + "/run"
        assert claims["exp"] - claims["iat"] == 3600
        assert claims.keys() == {
            *("aud", "azp", "email", "email_verified", "exp", "iat", "iss", "sub")
        }


async def test_the_keys_are_published_with_a_life_and_older_ones_stay_after_a_rotation() -> None:
    async with bench() as at, httpx.AsyncClient() as http:
        first = await http.get(at.server.keys_url)
        assert first.headers["cache-control"] == "public, max-age=3600, must-revalidate"
        at.server.rotate_key()
        second = await http.get(at.server.keys_url)
        assert len(second.json()["keys"]) == 2
        assert second.json()["keys"][1:] == first.json()["keys"]
        await at.create(oidc_token=tasks_v2.OidcToken(service_account_email=ACCOUNT))
        (got,) = await at.receiver.arrived(1)
        header = jwt.get_unverified_header(got.headers["authorization"].removeprefix("Bearer "))
        assert header["kid"] == second.json()["keys"][0]["kid"]


async def test_run_sends_at_once_past_pause_and_schedule() -> None:
    async with bench() as at:
        await at.client.pause_queue(name=QUEUE)
        made = await at.create(name="t", schedule_time=at.moment(3600))
        shown = await at.client.run_task(name=made.name)
        assert shown.dispatch_count == 1
        await at.receiver.arrived(1)
        await at.ended(made.name)
