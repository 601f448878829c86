"""Resolve which battle is named: by a prompt and two entrants, or by its id."""

from collections.abc import Sequence

from commands.errors import ConfigurationError
from commands.reading.resolve import require_known, unknown
from ledger.identity import PromptId
from projections.tournament.matches import Pairing, pairings
from projections.tournament.state import Tournament


def pairings_of_battle(
    state: Tournament, name: str, entrants: Sequence[str] = ()
) -> tuple[Pairing, ...]:
    """Return the pairings of two entrants on a prompt, one a dimension; or that of a battle's id.

    The entrants may be left out where there are two, or where an id says it all.

    Raises:
        ConfigurationError: A name is unknown, or does not say which battle.
    """
    prompts = [prompt.prompt_id for prompt in state.bank]
    if name not in prompts and not entrants:
        return (_pairing_of_id(state, name, prompts),)
    require_known("prompt", [name], prompts)
    roster = [entrant.entrant_id for entrant in state.roster]
    require_known("entrant", entrants, roster)
    prompt, two = PromptId(name), {*(entrants or roster)}
    if len(two) != 2:  # noqa: PLR2004  # a battle has two sides
        raise ConfigurationError(
            [f"name the two entrants after {name!r}; known: {', '.join(roster)}"]
        )
    of_prompt = [pairing for pairing in pairings(state, {prompt}) if pairing.entrants == two]
    if not of_prompt:
        raise ConfigurationError(
            [f"prompt {prompt!r} has no gold answer, and every dimension asked for needs one"]
        )
    return tuple(of_prompt)


def _pairing_of_id(state: Tournament, name: str, prompts: Sequence[PromptId]) -> Pairing:
    with_id = [
        pairing for pairing in pairings(state, prompts) if pairing.battle_id.startswith(name)
    ]
    if not with_id:
        raise unknown("prompt or battle", name, prompts)
    if len(with_id) > 1:
        raise ConfigurationError(
            [f"{name!r} begins the ids of {len(with_id)} battles; give more of the id"]
        )
    return with_id[0]
