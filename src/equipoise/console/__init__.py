"""The console: pages for the people who run experiments, as functions from records to HTML; HTTP is the service's.

A page is added without touching anything else of the console:

1. a module with a view: a frozen dataclass of plain data, and ``show(visit) -> Shown`` that makes it from records
   (`Visit.status`, `Visit.the` for other verbs of the experiment, `Visit.query`); what it computes takes records and
   times, so that tests need no HTTP;
2. a template in ``templates/`` that extends ``base.html``, fills ``{% block main %}`` and reads ``view`` and ``frame``.
   Everything is escaped, an unknown name is an error, links start with ``{{ frame.root }}``, and neither styles nor
   scripts stand in it: the policy of the pages refuses both;
3. a row in `page_table.PAGES` with path, roles and, for a tab of the experiment, its name.

A form begins with ``{% call form(frame, frame.here) %}`` of ``macros.html``, which adds the token and the mark of the
settings it was drawn from. It is handled by ``act(visit)`` of the same row, which reads `Visit.form`, calls verbs of
`Visit.the` and returns a `Redirect`; role, origin, token and staleness are checked before. To show the form again with
an error, it returns what is `Shown` with status 422.

An element with an id and ``data-live`` is kept up to date while the page is open: when the experiment has a new event,
``live.js`` fetches the page and exchanges those elements. Where something else than events says that (`Page.event`),
a row of data with the same function and the path ``.../live`` answers it. What has ``data-live="once"`` is exchanged
while it is empty; of the others, no form and no ``details`` belongs inside one. A chart is a row in `page_table.DATA`
that returns a Vega-Lite dict, and ``{% call figure(...) %}`` with its table in the template. Own scripts are modules in
``static/``, named in ``{% block scripts %}``; text enters pages by ``textContent`` only.
"""
