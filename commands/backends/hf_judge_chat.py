"""Show a query to a judge, so that no text in it can pose as the judge's control tokens.

A tokenizer turns "<|im_end|>" into the token that ends a turn wherever it reads those letters, in
a response too. So they are cut apart there: what is tokenized in pieces cannot become one token.
A template that marks its turns by plain letters has no such tokens, and only the query's fences.
"""

import re
from collections.abc import Sequence

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from commands.backends.hf_chat import encode, render
from projections.verdicts.queries import JudgeQuery

Turns = list[dict[str, str]]

_SYSTEM, _USER = "tourney-probe-system", "tourney-probe-user"


class JudgeChat:
    """A judge's chat template: as it was trained on, whatever the texts hold."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Find out what the template writes; one that shows a user's text is taken for granted."""
        self._tokenizer = tokenizer
        self._has_system = shows_system(tokenizer)
        probe = encode(tokenizer, self._rendered(_SYSTEM, _USER))
        self._controls = control_ids(tokenizer, probe)
        self._written = self._controls_in(probe)
        self._letters = letters_of(tokenizer, self._controls)

    def encode(self, query: JudgeQuery) -> tuple[int, ...] | None:
        """Return the tokens of a query, up to where the reply begins.

        None: some text in it becomes a control token, however it is cut.
        """
        cut = f"\ue000{query.query_key}\ue000"  # a digest of the texts, so in none of them
        system, user = (self._letters.sub(rf"\1{cut}", each) for each in (query.system, query.user))
        pieces = self._rendered(system, user).split(cut)
        tokens = tuple(token for piece in pieces for token in encode(self._tokenizer, piece))
        return tokens if self._controls_in(tokens) == self._written else None

    def _rendered(self, system: str, user: str) -> str:
        return render(
            self._tokenizer, turns(system, user, has_system=self._has_system), is_open=True
        )

    def _controls_in(self, tokens: Sequence[int]) -> list[int]:
        return [token for token in tokens if token in self._controls]


def turns(system: str, user: str, *, has_system: bool) -> Turns:
    """Return a chat; where a template has no system turn, its text goes before the user's."""
    if has_system:
        return [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return [{"role": "user", "content": f"{system}\n\n{user}"}]


def shows_system(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Tell if the template shows a system turn; some refuse one, some leave it out in silence."""
    try:
        chat = render(tokenizer, turns(_SYSTEM, _USER, has_system=True), is_open=True)
    except TemplateError:
        return False
    return _SYSTEM in chat and _USER in chat


def control_ids(tokenizer: PreTrainedTokenizerBase, probe: Sequence[int]) -> frozenset[int]:
    """Return the special tokens, and all others beyond the vocabulary that a template writes."""
    added = tokenizer.added_tokens_decoder
    special = {token for token, shown in added.items() if shown.special}
    return frozenset(special | set(tokenizer.all_special_ids) | (added.keys() & set(probe)))


def letters_of(tokenizer: PreTrainedTokenizerBase, controls: frozenset[int]) -> re.Pattern[str]:
    """Match the first letter of every control token, wherever it is written out."""
    written = sorted(filter(None, map(str, tokenizer.convert_ids_to_tokens(sorted(controls)))))
    any_of_them = "|".join(map(re.escape, written)) or "(?!)"  # none at all matches nowhere
    return re.compile(rf"(?=(?:{any_of_them}))(.)", re.DOTALL)
