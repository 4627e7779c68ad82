"""Addresses of pages. Each is a plain GET that works without scripts."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from analysis.base import catalogue, find_rule
from collector.domain.quantities import QUANTITIES
from dashboard.charts.base import Key
from dashboard.pages import fleet
from dashboard.pages.drafts import drafts_page
from dashboard.pages.fleet import Order, fleet_page
from dashboard.pages.rules import rule_page, rules_page
from dashboard.pages.run import run_page
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


def _page(template: str, **context: Any) -> HTMLResponse:
    return HTMLResponse(render(template, context))


@router.get("/")
def runs(
    request: Request,
    q: Annotated[str, Query(max_length=200)] = "",
    state: str = "",
    engine: str = "",
    order: str = Order.WORST.value,
) -> HTMLResponse:
    """All runs, or three ways to start where there is none."""
    rows = _store(request).list_runs()
    if not rows:
        return _page("first_run.html")
    known = Order(order) if order in set(Order) else Order.WORST
    query = fleet.Query(text=q, state=state, engine=engine, order=known)
    return _page("fleet.html", page=fleet_page(rows, query), keys=FLEET_KEYS)


@router.get("/runs/{run_id}")
def run(request: Request, run_id: str) -> HTMLResponse:
    """One run."""
    return _page("run.html", page=run_page(_store(request).report(run_id)))


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


@router.get("/definitions")
def definitions() -> HTMLResponse:
    """Every quantity."""
    return _page("definitions.html", quantities=tuple(QUANTITIES.values()))
