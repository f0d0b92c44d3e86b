"""For those who operate the service: is it alive, is it ready, what does it do."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from equipoise.service import models
from equipoise.service.routing import NO_KEY, READERS, Caller, GuardedRoute, Service, allow, failures

router = APIRouter(tags=["Operations"], route_class=GuardedRoute)


@router.get("/healthz", responses=failures(public=True), response_model=models.Health, summary="Alive?")
@allow(*NO_KEY)
async def healthz() -> Any:
    """Answer, which shows that the process is alive."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    responses=failures(public=True),
    response_model=models.Health,
    summary="Ready?",
)
@allow(*NO_KEY)
async def readyz(core: Service) -> Any:
    """Look into the store, which shows that requests can be served."""
    await core.look()
    return {"status": "ok"}


@router.get(
    "/metrics",
    responses=failures()
    | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Numbers."}},
    response_class=PlainTextResponse,
    summary="Numbers for Prometheus",
)
@allow(*READERS)
async def metrics(core: Service, key: Caller) -> Any:
    """Return requests, latencies, batch sizes, and of each experiment pending and overdue units and shares of arms."""
    key.require(READERS)
    text = await core.numbers()
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")
