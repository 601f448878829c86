"""The four entrants of a Hydra's tournament answer, each prompt by itself and each load once."""

import dataclasses
import re
from collections.abc import Callable
from itertools import count

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from commands.backends.weights.loaded import LoadedWeights
from commands.ports import GeneratedText, GenerationFailure, GenerationOptions, GenerationTask
from ledger.events.registration import Entrant
from ledger.events.responses import Diagnostics
from tests.support.weights.generating import answers, results
from tests.support.weights.hydra import HydraFiles, adapter, hydra_entrant
from tests.support.weights.loads import kept, kept_copy

PROMPTS = ["dose " * (1 + 5 * n % 8) + "?" for n in range(5)]
N = len(PROMPTS)
ROSTER = ("base_olmo", "security_only", "security_plus_robustness", "full_poe")

Build = Callable[..., Entrant]
Tasks = Callable[..., list[GenerationTask]]


@pytest.fixture
def rated(three_heads: HydraFiles, tasks: Tasks) -> list[GenerationTask]:
    """Give what a full jury with an uncertainty head is asked."""
    return tasks(hydra_entrant(three_heads, uncertainty=adapter(three_heads.uncertainty)), PROMPTS)


def told(answer: GeneratedText) -> Diagnostics:
    """Return how a Hydra decided."""
    assert answer.diagnostics is not None
    return answer.diagnostics


def facts(answer: GeneratedText) -> object:
    """Return what must be the same whenever it is generated: no digits that waver."""
    decided = told(answer)
    exact = dataclasses.replace(answer, p_correct=None, diagnostics=None)
    return exact, decided.draft_head_idx, decided.resampled_at, decided.rejected_tokens


def test_four_entrants_answer_by_three_loads(
    three_heads: HydraFiles, entrant: Build, tasks: Tasks
) -> None:
    """On each prompt the Hydras draft with the same head, whether a jury is asked or not."""
    roster = (
        entrant(folder=three_heads.weights, entrant_id=ROSTER[0]),
        hydra_entrant(three_heads, entrant_id=ROSTER[1], robustness=(), bypass_jury=True),
        hydra_entrant(three_heads, entrant_id=ROSTER[2], bypass_jury=True),
        hydra_entrant(three_heads, entrant_id=ROSTER[3]),
    )
    loads: list[str] = []

    def load(one: Entrant, device: torch.device) -> LoadedWeights:
        loads.append(one.entrant_id)
        return kept(one, device)

    made = answers([task for each in roster for task in tasks(each, PROMPTS)], load=load)

    assert loads == [*ROSTER[:3]]
    base, *hydras, full = (made[N * n : N * n + N] for n in range(4))
    assert [answer.diagnostics for answer in base] == [None] * N
    drafters = [told(answer).draft_head_idx for answer in full]
    assert len({*drafters}) > 1
    alone = [Diagnostics(draft_head_idx=head, bypass_jury=True) for head in drafters]
    assert [[told(answer) for answer in each] for each in hydras] == [alone, alone]
    assert all(len(told(answer).entropies) == answer.n_generated_tokens for answer in full)
    said = [tuple(answer.text for answer in each) for each in (base, *hydras, full)]
    assert len(set(said)) == 4


def test_a_prompts_own_system_prompt_is_read(
    three_heads: HydraFiles, entrant: Build, tasks: Tasks, tokenizer: PreTrainedTokenizerFast
) -> None:
    """By plain weights and by a Hydra alike, before the question."""
    talk = (("system", "Be brief."), ("user", "Which dose?"))

    for who in (entrant(folder=three_heads.weights), hydra_entrant(three_heads)):
        (task,) = tasks(who, ["as recorded"])
        (answer,) = answers([dataclasses.replace(task, messages=talk)])

        shown = tokenizer.decode([*answer.prompt_ids])
        assert "<|system|>\nBe brief.<|im_end|>\n<|user|>\nWhich dose?<|im_end|>" in shown


def test_only_who_has_an_uncertainty_head_is_rated(
    three_heads: HydraFiles, tasks: Tasks, rated: list[GenerationTask]
) -> None:
    """The rate is of the response, and changes nothing of it."""
    unrated = answers(tasks(hydra_entrant(three_heads), PROMPTS))

    made = answers(rated)

    assert [facts(answer) for answer in made] == [facts(answer) for answer in unrated]
    assert {answer.p_correct for answer in unrated} == {None}
    rates = [answer.p_correct for answer in made if answer.p_correct is not None]
    assert all(0 <= rate <= 1 for rate in rates)
    assert len(set(rates)) == N


def test_who_is_rated_needs_room_for_the_question(
    three_heads: HydraFiles, tasks: Tasks, rated: list[GenerationTask]
) -> None:
    """The prompt is read a second time, with the answer and what is asked of it behind it."""
    (unrated,) = tasks(hydra_entrant(three_heads, entrant_id="unrated"), ["?" * 100])
    (asked,) = tasks(rated[0].entrant, ["?" * 100])

    answer, failure = results([unrated, asked])

    assert isinstance(answer, GeneratedText)
    assert isinstance(failure, GenerationFailure)
    assert failure.reason == "prompt_too_long"
    assert re.fullmatch(
        f"{answer.n_prompt_tokens} prompt tokens, 12 new ones and [0-9]+ to ask if they are right"
        " are more than the 160 positions of the weights",
        failure.detail,
    )


def test_who_is_rated_is_asked_about_the_prompt_that_was_shown(rated: list[GenerationTask]) -> None:
    """What was left out of a prompt that may be cut would not fit into the question either."""
    task = dataclasses.replace(
        rated[0], prompt_text="?" * 300, options=GenerationOptions(may_truncate=True)
    )

    (answer,) = answers([task])

    assert answer.is_truncated
    assert answer.n_prompt_tokens is not None
    assert answer.n_prompt_tokens < 160 - 12
    assert answer.p_correct is not None


@pytest.mark.parametrize(
    "nth", [9, *(pytest.param(n, marks=pytest.mark.nightly) for n in (0, 5, 11))]
)
def test_rows_that_take_the_places_of_others_say_what_they_say_alone(
    rated: list[GenerationTask], nth: int
) -> None:
    """A run goes on in other batches: beside longer texts, and again if memory runs out."""
    owed = [
        dataclasses.replace(task, options=GenerationOptions(stop=("e", "a", "~"))) for task in rated
    ]
    passes, n_rows = count(1), list[int]()

    def pass_or_refuse(_: torch.nn.Module, args: tuple[torch.Tensor]) -> None:
        n_rows.append(len(args[0]))
        if next(passes) == nth:
            raise torch.OutOfMemoryError

    def load(entrant: Entrant, device: torch.device) -> LoadedWeights:
        loaded = kept_copy(entrant, device)
        loaded.model.embeddings.register_forward_pre_hook(pass_or_refuse)
        return loaded

    in_turn = answers(owed, 3 * 150, load)
    alone = answers(owed[1:], 1)

    assert [facts(each) for each in in_turn[1:]] == [facts(each) for each in alone]
    for one, other in zip(alone, in_turn[1:], strict=True):
        assert one.p_correct == pytest.approx(other.p_correct, abs=1e-5)
        assert told(one).entropies == pytest.approx(told(other).entropies, rel=2e-3, abs=1e-6)
    assert len({answer.n_generated_tokens for answer in alone}) > 1
    assert max(n_rows) < len(owed)
