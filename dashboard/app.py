"""The web service: pages, API and static files around a store of diagnosed runs."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from dashboard.api import alerts as api_alerts
from dashboard.api import checks, comparisons, drafts, errors, events, lookups, targets, uploads, v1
from dashboard.api.guard import Guard
from dashboard.api.openapi import Service
from dashboard.api.tags import Tags
from dashboard.pages import alerts as page_alerts
from dashboard.pages import routes
from dashboard.pages.kept import KeptPages
from dashboard.pages.templating import STATIC, product_version
from dashboard.store import RunStore

FOR_GOOD: Final = "public, max-age=31536000, immutable"


class _Files(StaticFiles):
    """Static files; an address with a version in it may be kept for good."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if b"v=" in scope["query_string"] and response.status_code == 200:
            response.headers["Cache-Control"] = FOR_GOOD
        return response


def create_app(store: RunStore, *, token: str | None = None) -> FastAPI:
    """The app.

    ``token``: what writing requests must carry; ``None`` is for loopback alone
    (:func:`dashboard.api.security.refuse_open_bind` is asked before the service listens).
    """
    app = create_bare_app()
    app.state.store = store
    app.state.token = token
    app.state.news = events.News(store)
    app.state.kept_pages = KeptPages()
    app.state.uploads = None
    app.state.collection = None
    app.state.feeding = None
    app.state.doctor = None
    app.state.alerts = None  # where there is a database, build_app has them
    for part in (v1, checks, comparisons, drafts, lookups, events, targets, uploads, api_alerts, routes, page_alerts):
        app.include_router(part.router)
    app.mount("/static", _Files(directory=STATIC), name="static")
    return app


def create_bare_app() -> FastAPI:
    """An app without a store: it tells that it lives, answers errors in one shape, and packs what it sends."""
    app = Service(
        title="draftscope",
        version=product_version(),
        summary="Whether speculative decoding works, why it does not, and what to do",
        docs_url=None,  # both viewers load their scripts from elsewhere
        redoc_url=None,
    )
    errors.install(app)
    app.include_router(v1.health)
    app.add_middleware(Tags)
    app.add_middleware(GZipMiddleware, minimum_size=1024)
    app.add_middleware(Guard)
    return app
