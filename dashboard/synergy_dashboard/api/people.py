"""The user of a request, by a bearer token or by the name that a trusted proxy sends."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fastapi import Request
from starlette.datastructures import Headers

from synergy_dashboard.api.problems import CALL_FAILED, Refusal, explain
from synergy_dashboard.api.reviews import Identity, Reviewer, scope_of
from synergy_dashboard.api.turns import BusyError
from synergy_dashboard.live.scope import Scope

SECRET_HEADER: Final = "x-synergy-proxy-secret"  # noqa: S105 - its name
TOKEN_HEADER: Final = "x-synergy-token"  # noqa: S105 - its name
"""For a bearer token, of those who ask through the API server's proxy: it takes the header Authorization for itself."""
_USER_HEADER: Final = "x-forwarded-user"
_GROUPS_HEADER: Final = "x-forwarded-groups"
_RESERVED: Final = "system:"
_AUTHENTICATED: Final = "system:authenticated"
_ASK_FOR_TOKEN: Final = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True, slots=True)
class Asker:
    """The user of a request, and which namespaces they may see."""

    user: Identity
    scope: Scope


class People:
    """Authenticates users. `namespaces` returns the namespaces that have jobs. `proxy_secret` is the file with the
    secret of a trusted proxy, None if no proxy is trusted."""

    def __init__(
        self, reviewer: Reviewer, namespaces: Callable[[], set[str]], proxy_secret: Path | None = None
    ) -> None:
        self._reviewer = reviewer
        self._namespaces = namespaces
        self._proxy_secret = proxy_secret

    async def identify(self, request: Request) -> Identity:
        """The user. Raises Refusal 401, or 503 if the API server cannot review the token now."""
        named = self._named_by_proxy(request.headers)
        if named is not None:
            return named
        token = request.headers.get(TOKEN_HEADER, "") or token_of(request.headers.get("authorization", ""))
        peer = request.client.host if request.client is not None else ""
        try:
            found = await self._reviewer.identify(token, peer)
        except (BusyError, *CALL_FAILED) as error:
            raise Refusal(503, f"the token cannot be reviewed now: {explain(error)}") from None
        if found is None:
            raise Refusal(401, "the API server refuses the token", _ASK_FOR_TOKEN)
        return found

    async def scope(self, user: Identity) -> Scope:
        """The namespaces that the user may see, possibly none. Raises Refusal 503 if the API server cannot review the
        rights now."""
        try:
            return await scope_of(self._reviewer, user, self._namespaces())
        except (BusyError, *CALL_FAILED) as error:
            raise Refusal(503, f"your rights cannot be reviewed now: {explain(error)}") from None

    async def asker(self, request: Request) -> Asker:
        """The user and the namespaces that they may see. Raises Refusal 403 if there are none."""
        user = await self.identify(request)
        scope = await self.scope(user)
        if not scope.everything and not scope.namespaces:
            raise Refusal(403, f"{user.name} may not get trainingjobs.kube-synergy.dev in any namespace that has some")
        return Asker(user, scope)

    async def asker_of(self, request: Request, namespace: str) -> Asker:
        """The same for one namespace, which may have no jobs now. Raises Refusal 403."""
        user = await self.identify(request)
        scope = await self.scope(user)
        try:
            allowed = scope.sees(namespace) or await self._reviewer.may_see(user, namespace)
        except (BusyError, *CALL_FAILED) as error:
            raise Refusal(503, f"your rights cannot be reviewed now: {explain(error)}") from None
        if not allowed:
            raise Refusal(403, f"{user.name} may not get trainingjobs.kube-synergy.dev in namespace {namespace}")
        return Asker(user, scope)

    async def asker_within(self, request: Request, namespace: str | None) -> Asker:
        """The user of a question about one namespace (None: about all that they may see). Raises Refusal 403."""
        if namespace is None:
            return await self.asker(request)
        asker = await self.asker_of(request, namespace)
        return replace(asker, scope=Scope(frozenset({namespace})))

    def _named_by_proxy(self, headers: Headers) -> Identity | None:
        """The user that the proxy names, if the request has the proxy's secret. Raises Refusal 401 for a wrong secret
        or for a user name that a proxy must not send."""
        shown = headers.get(SECRET_HEADER)
        if self._proxy_secret is None or shown is None:
            return None
        try:
            secret = self._proxy_secret.read_bytes().strip()
        except OSError:
            secret = b""
        if not secret or not hmac.compare_digest(shown.encode(), secret):
            raise Refusal(401, f"the header {SECRET_HEADER} has not the proxy's secret")
        if any(len(headers.getlist(name)) > 1 for name in (SECRET_HEADER, _USER_HEADER, _GROUPS_HEADER)):
            raise Refusal(
                401, f"{_USER_HEADER} and {_GROUPS_HEADER} must each come once: the proxy has to replace them"
            )
        user = headers.get(_USER_HEADER, "")
        if not user or user.startswith(_RESERVED):
            raise Refusal(401, "the proxy names no user" if not user else f"a proxy cannot name the user {user}")
        groups = [one.strip() for one in headers.get(_GROUPS_HEADER, "").split(",")]
        # Kubernetes' own groups are not a proxy's to give
        own = tuple(one for one in groups if one and not one.startswith(_RESERVED))
        return Identity(user, groups=(*own, _AUTHENTICATED))


def token_of(authorization: str) -> str:
    """The token of the header. Raises Refusal 401."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Refusal(401, "send the header Authorization: Bearer TOKEN", _ASK_FOR_TOKEN)
    return token.strip()
