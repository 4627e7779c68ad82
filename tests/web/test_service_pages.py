"""Targets, settings, news and lookups: what the pages say of the service, and the same over the API."""

import asyncio

import pytest

from collector.domain.errors import SourceError
from dashboard.api.events import News, _told
from dashboard.collecting import TargetState
from dashboard.doctor import Doctor
from dashboard.feeding import SourceState
from dashboard.masked import Secret, SecretUrl
from dashboard.pages.targets import targets_page
from dashboard.settings import Service, Settings
from tests.web.pages_read import Page


@pytest.fixture(scope="module")
def run(samples):
    return samples.get("/api/v1/runs?state=problem").json()["runs"][0]["id"]


def test_pages_without_anything_to_show_say_what_to_do(client_of):
    client = client_of()
    assert "[[targets]]" in Page(client.get("/targets").text).said()
    assert "kept elsewhere" in Page(client.get("/settings").text).said()
    assert "/upload" in Page(client.get("/").text).values("href")


def test_what_does_not_answer_stands_first_and_says_what_to_do():
    fine = TargetState("http://a:1", engine="vllm", scrapes=3, last_success_at=1.0, run_id=5)
    silent = TargetState("http://z:1", error="refuses the connection", hint="is it running?", failures_in_a_row=2)
    store = SourceState("prometheus", "http://p:9090", runs=2, last_success_at=5.0, problems=("run 3 has a gap",))
    new = TargetState("http://b:1")
    page = targets_page([fine, new, silent], [SourceError("no such name")], [store])
    assert page.statement == "1 of 4 addresses does not answer as it should"
    assert [row.place for row in page.targets] == ["http://z:1", "http://b:1", "http://a:1"]
    assert page.targets[0].says == "refuses the connection, 2 times in a row"
    assert page.sources[0].says == "run 3 has a gap"


def test_settings_show_no_secret(database):
    service = Service(SecretUrl("postgresql://me:hush@db/x"), token=Secret("hush"))
    shown = str(Doctor(database, Settings(service)).in_use())
    assert "hush" not in shown
    assert "***" in shown


def test_doctor_tells_of_runs_that_wait(samples, sqlite_database):
    aspects = {one["name"]: one for one in samples.get("/api/v1/doctor").json()["aspects"]}
    assert aspects["Judging"]["condition"] == "reading"
    assert aspects["Targets"]["condition"] == "not set up"
    says = Page(samples.get("/settings").text).said()
    for one in aspects.values():
        assert one["says"] in says


def test_series_are_columns_of_windows(samples, run):
    whole = samples.get(f"/api/v1/runs/{run}/series").json()
    assert len(whole["at"]) == len(whole["value"]) == len(whole["counted"]) == whole["total"] > 10
    assert whole["at"] == sorted(whole["at"])
    few = samples.get(f"/api/v1/runs/{run}/series?points=4").json()
    assert (few["total"], len(few["value"])) == (whole["total"], 4)
    assert max(few["value"]) == max(whole["value"])
    assert samples.get(f"/api/v1/runs/{run}/series?points=5000").status_code == 422


def test_what_a_client_has_is_not_sent_again(samples, run):
    path = f"/api/v1/runs/{run}/diagnosis"
    first = samples.get(path)
    again = samples.get(path, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert samples.get("/api/v1/runs/none", headers={"If-None-Match": "*"}).status_code == 404


def test_news_come_when_the_list_changes():
    class Store:
        state = "one"

        def list_state(self):
            return self.state

    async def read():
        store = Store()
        told = _told(News(store))
        begin = [await anext(told), await anext(told)]
        store.state = "two"
        return [*begin, await anext(told)]

    retry, first, second = asyncio.run(read())
    assert retry.startswith("retry:")
    assert first == "event: runs\ndata: one\n\n"
    assert second == "event: runs\ndata: two\n\n"
