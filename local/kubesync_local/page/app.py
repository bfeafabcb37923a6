"""The pages and their addresses. ``access`` stands before all of them; templates hold the words."""

import logging
import os
import re
import traceback
from pathlib import Path
from typing import Any, Final

from flask import Flask, Response, abort, make_response, redirect, render_template, request, url_for
from jinja2 import StrictUndefined
from markupsafe import Markup
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.errors import UsageError
from kubesync_local.commands.show.explain_name import why_nobody
from kubesync_local.commands.show.service_keys import parse_service_key
from kubesync_local.commands.show.status_table import lease_in_words
from kubesync_local.documents.listener_words import ago, listener_words
from kubesync_local.page import views
from kubesync_local.page.changes import MAX_PAGES, PERIODS, Wanted, read_changes
from kubesync_local.page.finding import Found, has_name, is_whole_name, search, wanted_text
from kubesync_local.page.gathering import ERRORS, Gatherer, Overview, in_words
from kubesync_local.page.needs import needs_of
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.escaping import spelled, visible
from kubesync_local.terminal.output import counted, remark, side_in_words
from kubesync_local.terminal.states import state_in_words
from kubesync_local.workplace.registry import state_of

REFRESH_SECONDS: Final = 30
_STILL: Final = "kubesync-refresh"
_OVERVIEW_WAIT: Final = 1.5
_NAMED_WAIT: Final = 0.5
_CLUSTER_WAIT: Final = 8.0
_SEARCH_SECONDS: Final = 6.0
_FILTERS: Final = frozenset(
    {"cluster", "from", "name", "needs", "page", "period", "q", "service", "show", "since", "until"}
)
_WITHOUT_REFRESH: Final = frozenset({"search", "service", "changes"})
"""A page with a form would lose what is being typed; a Service's page asks Route 53, whose rate sessions need."""


def make_app(gatherer: Gatherer) -> Flask:
    """The WSGI application of the pages."""
    app = Flask("kubesync_local.page", static_folder=None)
    app.logger.disabled = True
    logging.getLogger("werkzeug").disabled = True
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    # Whatever a template prints is escaped for HTML by Jinja, and made visible here: names and messages come from outside.
    app.jinja_env.finalize = _shown
    app.jinja_env.globals.update(ago=ago, counted=counted, side_in_words=side_in_words, lease_in_words=lease_in_words)
    app.jinja_env.filters.update(moment=_moment_in_words, foldable=_foldable, took=_took, when=views.when)
    app.jinja_env.filters.update(
        decidable=in_the_way_for_people, spelled=spelled, in_words=state_in_words, cluster_state=state_of
    )
    pages = _Pages(gatherer)
    for rule, endpoint, view in (
        ("/", "overview", pages.overview),
        ("/cluster/<name>", "cluster", pages.cluster),
        ("/zones", "zones", pages.zones),
        ("/zone/<zone_id>", "zone", pages.zone),
        ("/service/<path:key>", "service", pages.service),
        ("/changes", "changes", pages.changes),
        ("/search", "search", pages.search),
        ("/refresh/<word>", "refresh", _set_refresh),
        ("/page.css", "style", _style),
    ):
        app.add_url_rule(rule, endpoint, view, methods=["GET"])
    app.context_processor(pages.around)
    app.register_error_handler(Exception, pages.failed)
    return app


def _shown(value: object) -> object:
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    before, after = (" " if edge.isspace() else "" for edge in (value[:1], value[-1:]))
    return f"{before}{visible(value)}{after}"


def _foldable(text: str) -> Markup:
    """A name or a key that may be folded after its dots and slashes. A copy from the screen is right: nothing is inserted."""
    return Markup("<wbr>").join(re.split(r"(?<=[./])(?=[^./])", visible(text)))


def _took(seconds: float) -> str:
    return "less than 0.1 s" if seconds < 0.05 else f"{seconds:.1f} s"


class _Pages:
    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer

    def around(self) -> dict[str, Any]:
        """What every template has."""
        endpoint = request.endpoint or ""
        still = request.cookies.get(_STILL) == "off"
        # Only names that pages know: url_for obeys others (_scheme, _external).
        given = {name: text for name, text in request.args.items() if name in _FILTERS and text}
        known = request.endpoint is not None
        here = url_for(endpoint, **{**given, **(request.view_args or {})}) if known else url_for("overview")
        again = {**given, "again": "1", **(request.view_args or {})}
        return {
            "place": self._gatherer.place,
            "endpoint": endpoint,
            "still": still,
            "refreshes": endpoint not in _WITHOUT_REFRESH,
            "refresh_seconds": REFRESH_SECONDS,
            "here": here,
            "again_here": url_for(endpoint, **again) if known else url_for("overview"),
            "tone": views.TONES,
            "parts_url": lambda name, number: url_for(endpoint, **{**given, name: number, **(request.view_args or {})}),
            "now": self._gatherer.now(),
        }

    # --- pages ---

    def overview(self) -> str:
        seen = self._gatherer.overview(again=_again())
        self._gatherer.named(0)  # read while the facts are waited for
        facts = self._gatherer.facts(seen.clusters, _OVERVIEW_WAIT)
        named = self._gatherer.named(_NAMED_WAIT)
        now = self._gatherer.now()
        needs = needs_of(seen, facts, now, named)
        rows = views.cluster_rows(seen, facts, now)
        return render_template(
            "overview.html",
            seen=seen,
            read=seen,
            named=named,
            needs=views.page_of(needs, _number("needs"), 25),
            broken=sum(need.level == "broken" for need in needs),
            decide=sum(need.level == "decide" for need in needs),
            clusters=views.page_of(rows, _number("page"), views.CLUSTERS_SHOWN),
            totals=views.totals_of(seen, facts),
            facts_read=views.facts_read(seen.clusters, facts, now),
            lag=views.lag_of(seen, now),
        )

    def cluster(self, name: str) -> str:
        seen, config = self._chosen(name)
        facts = self._gatherer.facts([config], _CLUSTER_WAIT, services=True, again=_again()).get(name)
        now = self._gatherer.now()
        show = request.args.get("show", "all")
        services = views.services_shown(facts, show) if facts is not None else []
        return render_template(
            "cluster.html",
            read=seen,
            config=config,
            facts=facts,
            failed=self._gatherer.failed(name),
            configured=views.configured(config),
            listeners=[
                {**row, "words": listener_words(row, now, running=seen.serves(config), disabled=config.paused)}
                for row in seen.listeners[name]
            ],
            needs=needs_of(views.only(seen, config), {name: facts} if facts else {}, now),
            services=views.page_of(services, _number("page"), views.SERVICES_SHOWN),
            show=show,
            marks=len(seen.marks[name]),
        )

    def zones(self) -> str:
        seen = self._gatherer.overview(again=_again())
        facts = self._gatherer.facts(seen.clusters, _OVERVIEW_WAIT)
        rows = views.zone_rows(seen, facts)
        return render_template("zones.html", read=seen, zones=views.page_of(rows, _number("page"), 100))

    def zone(self, zone_id: str) -> str:
        seen = self._gatherer.overview(again=_again())
        users = [config for config in seen.clusters if any(zone.id == zone_id for zone in config.zones)]
        if not users and zone_id not in seen.zone_problems:
            abort(404, f"no registered cluster has a zone {zone_id}")
        facts = self._gatherer.facts(users, _CLUSTER_WAIT, again=_again())
        plan, show = views.plan_of(zone_id, facts), request.args.get("show", "all")
        return render_template(
            "zone.html",
            read=seen,
            zone=views.zone_of(zone_id, users),
            problem=seen.zone_problems.get(zone_id),
            users=users,
            facts=facts,
            facts_read=views.facts_read(users, facts, self._gatherer.now()),
            sets=sum(known.sets_in_zone.get(zone_id, 0) for known in facts.values()),
            plan=views.page_of(views.planned(plan, show), _number("page"), views.PLAN_SHOWN),
            show=show,
            whole=len(plan),
            counts=views.counts_of(plan),
            cut=any(sum(known.pending_counts.values()) > len(known.pending) for known in facts.values()),
            advice=views.zone_advice(seen.zone_problems.get(zone_id)),
        )

    def service(self, key: str) -> str:
        parsed = parse_service_key(key)
        seen, config = self._chosen(parsed.cluster)
        found = self._gatherer.explanation(parsed, config, again=_again())
        if found.value is None:
            abort(404, f"kubesync knows no {parsed.kind} {key} now; Changes shows what became of a deleted one")
        shown = {"read": found, "found": found.value, "config": config, "blocks": views.blocks_of(found.value)}
        return render_template("service.html", **shown, running=seen.running)

    def changes(self) -> str:
        given = {name: request.args.get(name, "").strip() for name in ("cluster", "service", "name")}
        wanted = Wanted(
            **given,
            period=request.args.get("period", "1d"),
            until=_moment("until"),
            page=min(max(1, _number("page")), MAX_PAGES),
            since=_moment("since"),
        )
        seen = self._gatherer.overview(again=_again())
        problem, found = "", None
        names = sorted(seen.configs)
        if given["service"] and not given["cluster"]:
            wanted = views.in_cluster_of(wanted)
        try:
            found = read_changes(self._gatherer, wanted, names, again=_again())
        except UsageError as error:
            problem = str(error).replace("--", "")
        return render_template(
            "changes.html",
            read=found or seen,
            found=found.value if found else None,
            wanted=wanted,
            given=given,
            periods=PERIODS,
            names=names,
            problem=problem,
            last_page=MAX_PAGES,
            lines=[views.change_line(row) for row in found.value.rows] if found else [],
        )

    def search(self) -> str | BaseResponse:
        seen = self._gatherer.overview(again=_again())
        given = request.args.get("q", "")
        text = wanted_text(given)
        configs = [config for config in seen.clusters if config.name >= request.args.get("from", "")]
        until = self._gatherer.now() + _SEARCH_SECONDS

        def read(config: ClusterConfig) -> Any:
            wait = max(0.5, until - self._gatherer.now())
            known = self._gatherer.facts([config], wait, services=True).get(config.name)
            return known if known is not None and known.has_services else None

        found = search(text, configs, read, lambda: self._gatherer.now() >= until) if text else None
        return render_template(
            "search.html",
            read=seen,
            given=given,
            text=text,
            found=found,
            why=self._why_missing(text, found, seen) if found is not None else [],
        )

    def _why_missing(self, text: str, found: Found, seen: Overview) -> list[str]:
        """What was searched for is a name that nobody has: why."""
        if not is_whole_name(text) or has_name(found, text):
            return []
        zones = sorted({zone.name for config in seen.clusters for zone in config.zones})
        if not any(f".{text}".endswith(f".{zone}") for zone in zones):
            return [f"no registered zone holds the name: the zones are {', '.join(zones)}"] if zones else []
        # The rows of the page lack what wants a name and has no address.
        nobody = f"nobody has the name: `kubesync explain {text}` says whether an object wants it"
        return [nobody, *why_nobody(text, seen.clusters, lambda cluster: bool(seen.listeners.get(cluster)))]

    def _chosen(self, name: str) -> tuple[Overview, ClusterConfig]:
        seen = self._gatherer.overview(again=_again())
        config = seen.configs.get(name)
        if config is None:
            why = "this release cannot read its configuration" if name in seen.configs else "it is not registered"
            abort(404, f"there is no cluster {name}: {why}")
        return seen, config

    # --- what goes wrong ---

    def failed(self, error: Exception) -> Response:
        """Every error as a page that says what to do."""
        if isinstance(error, HTTPException):
            status, title, text = error.code or 500, error.name, error.description or ""
        elif isinstance(error, UsageError):
            status, title, text = 400, "That cannot be shown", str(error)
        elif isinstance(error, ERRORS):
            status, title, text = 503, "AWS does not give what this page needs", in_words(error)
        else:
            status, title, text = 500, "This page failed", f"{type(error).__name__}: {error}"
            remark(f"kubesync: {request.path} failed: {text} (KUBESYNC_DEBUG=1 shows where)")
            if os.environ.get("KUBESYNC_DEBUG") == "1":
                traceback.print_exception(error)
        shown = {"title": title, "text": text, "status": status, "denied": "denied" in text, "read": None}
        return make_response(render_template("error.html", **shown), status)


def _style() -> Response:
    return Response((Path(__file__).parent / "static/page.css").read_bytes(), content_type="text/css; charset=utf-8")


def _set_refresh(word: str) -> BaseResponse:
    """Remember in a cookie whether pages refresh, and go back."""
    if word not in ("on", "off"):
        abort(404, "there is no such page")
    back = request.args.get("back", "")
    local = back.startswith("/") and back[1:2] not in ("/", "\\") and back.isprintable() and back.isascii()
    answer = redirect(back if local else url_for("overview"), 303)
    answer.set_cookie(_STILL, word, httponly=True, samesite="Strict")
    return answer


def _moment_in_words(epoch: float) -> str:
    return f"{timestamp(epoch)[:19].replace('T', ' ')} UTC"


def _again() -> bool:
    return request.args.get("again") == "1"


def _number(name: str) -> int:
    given = request.args.get(name, "1")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 7 else 1


def _moment(name: str) -> float | None:
    given = request.args.get(name, "")
    return float(given) if given.isascii() and given.isdigit() and len(given) < 12 else None
