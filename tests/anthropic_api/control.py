"""What a test tells the fake and asks of it, over HTTP: paths that begin with an underscore."""

from datetime import timedelta

import msgspec

from tests.anthropic_api.errors import ApiError, invalid, not_found
from tests.anthropic_api.exchange import Answer, Request, answer_of
from tests.anthropic_api.faults import FaultPlan, Programme
from tests.anthropic_api.service import Service, error_of


class Advance(msgspec.Struct, frozen=True):
    """What POST /_clock takes."""

    advance_s: float


class Control:
    """The test's side of the fake; no part of the API, and needs no key."""

    def __init__(self, service: Service, plan: FaultPlan) -> None:
        self._service = service
        self._plan = plan

    def answer(self, request: Request) -> Answer:
        """Do what a test asks."""
        try:
            return self._done(request)
        except msgspec.DecodeError as error:
            return error_of(invalid(f"{request.path}: {error}"))
        except ApiError as error:
            return error_of(error)

    def _done(self, request: Request) -> Answer:
        match request.method, request.path:
            case "GET", "/_bill":
                bill = self._service.bill(settle=request.query.get("settle") != "false")
                is_short = request.query.get("lines") == "false"
                return answer_of(msgspec.structs.replace(bill, lines=()) if is_short else bill)
            case "POST", "/_faults":
                self._programme(msgspec.json.decode(request.body, type=Programme))
            case "POST", "/_clock":
                passed = msgspec.json.decode(request.body, type=Advance)
                self._service.advance(timedelta(seconds=passed.advance_s))
            case "POST", "/_end":
                self._service.end_batches()
            case _:
                raise not_found(f"{request.method} {request.path}")
        return answer_of({})

    def _programme(self, programme: Programme) -> None:
        if programme.clear:
            self._plan.clear()
        self._plan.inject(programme.faults, shares=programme.shares)
