"""What there is to call: the OpenAPI document, a page that shows it without a network, and a way to both from `/`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import Request  # noqa: TC002  (the framework reads the annotations)
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse

from equipoise._version import __version__
from equipoise.service.examples import EXAMPLES
from equipoise.service.routing import NO_KEY, GuardedRoute, allow

if TYPE_CHECKING:
    from fastapi import FastAPI

# All links are relative, so that they hold wherever a proxy puts the service.
_LINKS = {"documentation": "docs", "openapi": "openapi.json", "health": "healthz"}
_FILES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'"
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Equipoise API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="page"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script>
SwaggerUIBundle({
  url: "openapi.json", dom_id: "#page", deepLinking: true, persistAuthorization: false, validatorUrl: null
})
</script>
</body>
</html>
"""


def add_documentation(app: FastAPI) -> None:
    """Add the document and the page; nothing here tells anything about experiments, so nothing needs a key."""
    router = app.router
    router.route_class = GuardedRoute

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]

    @router.get("/", include_in_schema=False)
    @allow(*NO_KEY)
    async def entrance(request: Request) -> Any:
        varies = {"vary": "accept"}
        if "text/html" in request.headers.get("accept", ""):  # a browser
            return RedirectResponse(_LINKS["documentation"], headers=varies)
        return JSONResponse({"name": "equipoise", "version": __version__, "links": _LINKS}, headers=varies)

    @router.get("/openapi.json", include_in_schema=False)
    @allow(*NO_KEY)
    async def document() -> Any:
        return JSONResponse(openapi())

    @router.get("/docs", include_in_schema=False)
    @allow(*NO_KEY)
    async def page() -> Any:
        return HTMLResponse(_PAGE, headers={"content-security-policy": _POLICY})

    @router.get("/docs/{file}", include_in_schema=False)
    @allow(*NO_KEY)
    async def script(file: str) -> Any:
        from starlette.exceptions import HTTPException

        if file not in _FILES:
            raise HTTPException(404)
        return FileResponse(_assets() / file, media_type=_FILES[file], headers={"cache-control": "max-age=86400"})


_NO_SUCH_OPERATION = """
An address that is not here is answered with 404, and a method that an address does not take with 405, whose header
`Allow` names those it takes.
"""


def _document(app: FastAPI) -> dict[str, Any]:
    description = f"{app.description}{_NO_SUCH_OPERATION}"
    document = get_openapi(title=app.title, version=app.version, description=description, routes=app.routes)
    document["servers"] = [{"url": "."}]  # where the document is
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if path not in ("/healthz", "/readyz"):
                operation["security"] = [{"key": []}]
            for status, answer in operation["responses"].items():
                _describe(document, status, answer)
            if "201" in operation["responses"]:  # and 200 says that it was there before
                before = operation["responses"]["200"]["content"]["application/json"]
                before["example"] |= {"new": False} if "new" in before["example"] else {}
            for content in operation.get("requestBody", {}).get("content", {}).values():
                fields = _model(document, content["schema"])["properties"]
                examples = {name: field["examples"][0] for name, field in fields.items() if "examples" in field}
                content["example"] = {name: value for name, value in examples.items() if value is not None}
    return document


def _describe(document: dict[str, Any], status: str, answer: dict[str, Any]) -> None:
    """Say what an answer is, where the framework only says that it is one, and what it looks like."""
    [*contents] = answer["content"].values()
    if answer["description"] == "Successful Response":
        answer["description"] = _model(document, contents[0]["schema"])["description"]
    if status < "400" and "application/json" in answer["content"]:
        answer["content"]["application/json"]["example"] = dict(EXAMPLES[_name(contents[0]["schema"])])
    if status >= "400":  # whatever a route answers otherwise, its errors are JSON
        answer["content"] = {"application/json": contents[0]}


def _model(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the model that a schema refers to."""
    found: dict[str, Any] = document["components"]["schemas"][_name(schema)]
    return found


def _name(schema: dict[str, Any]) -> str:
    """Return the name of the model that a schema refers to, as the only thing or as one of several."""
    [reference] = [one["$ref"] for one in (schema, *schema.get("anyOf", ())) if "$ref" in one]
    name: str = reference.rpartition("/")[2]
    return name


def _assets() -> Path:
    """Return where the package that ships the page's scripts keeps them."""
    found = find_spec("fastapi_offline")
    assert found is not None  # noqa: S101
    assert found.origin is not None  # noqa: S101
    return Path(found.origin).parent / "static"
