"""Addresses of pages. Each is a plain GET that works without scripts."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, File, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from analysis.base import catalogue, find_rule
from collector.domain.errors import DraftscopeError, InputError, UnknownName
from collector.domain.quantities import QUANTITIES
from collector.storage.engine import Database
from collector.storage.runs import load_stored
from collector.storage.traces import last_window, last_window_of_group, traces_of_group, traces_of_run
from dashboard import checking
from dashboard.api.errors import status_of
from dashboard.api.security import require_token
from dashboard.api.uploads import store
from dashboard.charts.base import Key
from dashboard.database_store import row_of_stored, run_number
from dashboard.doctor import Doctor
from dashboard.pages import fleet
from dashboard.pages.check import Form as CheckForm
from dashboard.pages.check import check_page
from dashboard.pages.compare import MOST_RUNS, choice_page, compare_page
from dashboard.pages.drafts import drafts_page
from dashboard.pages.fleet import Order, fleet_page
from dashboard.pages.kept import KeptPages
from dashboard.pages.over_time import POINTS, RANGES, SHOWN, OverTime, Subject, over_time, range_named, since
from dashboard.pages.rules import rule_page, rules_page
from dashboard.pages.run import run_page
from dashboard.pages.standalone import run_report
from dashboard.pages.targets import targets_page
from dashboard.pages.templating import render
from dashboard.store import RunStore

FLEET_KEYS: Final = (
    Key("line", "measured", "acceptance length, 95%"),
    Key("band", "promised-soft", "healthy to validation"),
    Key("line", "ink", "pays from here"),
    Key("cannot", "", "cannot tell"),
)

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


def _store(request: Request) -> RunStore:
    store: RunStore = request.app.state.store
    return store


def _page(template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    return HTMLResponse(render(template, context), status)


@router.get("/")
def runs(
    request: Request,
    q: Annotated[str, Query(max_length=200)] = "",
    state: str = "",
    engine: str = "",
    order: str = Order.WORST.value,
    page: Annotated[int, Query(ge=1)] = 1,
) -> HTMLResponse:
    """All runs, or three ways to start where there is none."""
    rows = _store(request).list_runs()
    if not rows:
        return _page("first_run.html")
    known = Order(order) if order in set(Order) else Order.WORST
    query = fleet.Query(text=q, state=state, engine=engine, order=known, page=page)
    return _page("fleet.html", page=fleet_page(rows, query), keys=FLEET_KEYS)


@router.get("/runs/{run_id}")
def run(request: Request, run_id: str, chosen: Annotated[str, Query(alias="range")] = "") -> HTMLResponse:
    """One run; ``range`` is that of its figures over time, where it is watched."""
    kept: KeptPages = request.app.state.kept_pages
    report = _store(request).report(run_id)
    variant = chosen if report.watched and chosen in RANGES else ""
    text = kept.of(report, lambda report: render("run.html", {"page": run_page(report, variant)}), variant)
    return HTMLResponse(text)


@router.get("/runs/{run_id}/over-time")
def run_over_time(request: Request, run_id: str, chosen: Annotated[str, Query(alias="range")] = "") -> HTMLResponse:
    """A watched run over a range of time; for htmx the section alone."""
    return _over_time(request, _run_over_time(request, run_number(run_id), chosen))


def _run_over_time(request: Request, number: int, chosen: str) -> OverTime:
    now = time.time()
    with _database(request).reading() as connection:
        row = row_of_stored(load_stored(connection, number))
        last = last_window(connection, number)
        name = range_named(chosen, last, now)
        found = traces_of_run(connection, number, SHOWN, since=since(name, now), points=POINTS)
    subject = Subject.run(row.id, row.target or row.source, row.quantities, row.baseline_throughput)
    return over_time(subject, found, name, last, now)


@router.get("/groups")
def group_over_time(
    request: Request,
    group: Annotated[str, Query(max_length=500)],
    chosen: Annotated[str, Query(alias="range")] = "",
) -> HTMLResponse:
    """All watched runs of a group over a range of time."""
    now = time.time()
    with _database(request).reading() as connection:
        last = last_window_of_group(connection, group)
        name = range_named(chosen, last, now)
        found = traces_of_group(connection, group, SHOWN, since=since(name, now), points=POINTS)
    return _over_time(request, over_time(Subject.group(group), found, name, last, now))


def _over_time(request: Request, part: OverTime) -> HTMLResponse:
    layout = "fragment.html" if request.headers.get("HX-Request") else "base.html"
    response = _page("over_time.html", part=part, layout=layout)
    response.headers["Vary"] = "HX-Request"
    return response


def _database(request: Request) -> Database:
    database: Database | None = getattr(request.app.state, "database", None)
    if database is None:
        raise UnknownName("no engine is watched here")
    return database


@router.get("/runs/{run_id}/report")
def report(request: Request, run_id: str) -> HTMLResponse:
    """The page of a run as one file, to hand on."""
    found = _store(request).report(run_id)
    charts = _run_over_time(request, run_number(run_id), "all").charts if found.watched else ()
    text = run_report(found, charts)
    return HTMLResponse(text, headers={"Content-Disposition": f'attachment; filename="draftscope-run-{run_id}.html"'})


@router.get("/compare")
def compare(
    request: Request,
    run: Annotated[list[str] | None, Query()] = None,
    chosen: Annotated[list[str] | None, Query()] = None,
) -> HTMLResponse:
    """Runs side by side, the earliest first; a choice of runs where fewer than two are named."""
    runs = list(dict.fromkeys(run or []))
    if len(runs) < 2:
        return _page("compare.html", page=choice_page(_store(request).list_runs(), [*runs, *(chosen or [])]))
    if len(runs) > MOST_RUNS:
        raise InputError(f"{len(runs)} runs are chosen, at most {MOST_RUNS} are compared at once")
    store = _store(request)
    return _page("compare.html", page=compare_page(store.compare(store.earliest_first(runs))))


@router.get("/upload")
def upload_form(request: Request) -> HTMLResponse:
    """The form that takes logs, configs and bundles."""
    return _page("upload.html", problem=None, token=bool(request.app.state.token))


@router.post("/upload", dependencies=[Depends(require_token)])
def upload(
    request: Request,
    files: Annotated[list[UploadFile], File()],
    deployment: Annotated[str, Form(max_length=200)] = "",
    engine_version: Annotated[str, Form(max_length=40)] = "",
    validation_accuracy: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Store the runs of the files and go to the one that they are about."""
    try:
        stored = store(request, files, deployment, engine_version, validation_accuracy)
    except DraftscopeError as problem:
        token = bool(request.app.state.token)
        return _page("upload.html", status=status_of(problem), problem=problem, token=token)
    address = f"/runs/{stored.run}"
    if request.headers.get("HX-Request"):
        return Response(headers={"HX-Redirect": address})
    return RedirectResponse(address, status_code=303)


@router.get("/check")
def check_form() -> HTMLResponse:
    """The form that launch commands are pasted into."""
    return _page("check.html", page=check_page(CheckForm()))


@router.post("/check")
def check(
    command: Annotated[str, Form(max_length=checking.LARGEST_COMMANDS)],
    engine: Annotated[str, Form(max_length=40)] = "",
    engine_version: Annotated[str, Form(max_length=40)] = "",
    device: Annotated[str, Form(max_length=40)] = "",
    pick: Annotated[str, Form(max_length=40)] = "",
    draft_config: UploadFile | None = None,
    target_config: UploadFile | None = None,
) -> HTMLResponse:
    """What each release makes of the pasted commands; ``pick`` is the release chosen in the answer before."""
    form = CheckForm(command, engine, pick or engine_version, device)
    try:
        beside = checking.beside_of(engine, form.engine_version, device, _text(draft_config), _text(target_config))
        checks = checking.judge_text(command, beside)
    except DraftscopeError as problem:
        return _page("check.html", status=status_of(problem), page=check_page(form, problem=problem))
    return _page("check.html", page=check_page(form, checks))


def _text(config: UploadFile | None) -> str:
    """The text of a config file that came with a form.

    Raises:
        InputError: it is larger than any config.
    """
    if config is None:
        return ""
    raw = config.file.read(checking.LARGEST_CONFIG + 1)
    if len(raw) > checking.LARGEST_CONFIG:
        raise InputError(f"{config.filename} is no config.json: it is larger than 1 MiB")
    return raw.decode(errors="replace")


@router.get("/rules")
def rules(request: Request) -> HTMLResponse:
    """The catalogue of rules."""
    return _page("rules.html", families=rules_page(catalogue(), _store(request).list_runs()))


@router.get("/rules/{rule_id}")
def rule(request: Request, rule_id: str) -> HTMLResponse:
    """One rule."""
    return _page("rule.html", page=rule_page(find_rule(rule_id), _store(request).list_runs()))


@router.get("/drafts")
def drafts(request: Request) -> HTMLResponse:
    """The registry of drafts."""
    return _page("drafts.html", page=drafts_page(_store(request).drafts()))


@router.get("/targets")
def targets(request: Request) -> HTMLResponse:
    """Engines that are watched and stores that are read."""
    state = request.app.state
    collection, feeding = state.collection, state.feeding
    return _page(
        "targets.html",
        page=targets_page(
            collection.states() if collection is not None else [],
            list(collection.problems.values()) if collection is not None else [],
            feeding.states() if feeding is not None else [],
        ),
    )


@router.get("/settings")
def settings(request: Request) -> HTMLResponse:
    """How the service itself is, and the settings in use."""
    doctor: Doctor | None = request.app.state.doctor
    return _page(
        "settings.html",
        aspects=doctor.look() if doctor is not None else [],
        tables=doctor.in_use() if doctor is not None else [],
    )


@router.get("/definitions")
def definitions() -> HTMLResponse:
    """Every quantity."""
    return _page("definitions.html", quantities=tuple(QUANTITIES.values()))
