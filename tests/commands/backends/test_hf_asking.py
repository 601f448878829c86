"""Prompts are put, and answers drawn and ended, as a task asks."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from commands.backends.huggingface.generator import HfGenerator, encode_text
from commands.backends.weights.chat import encode_prompt, end_of_turn
from commands.errors import WeightsError
from commands.ports import GenerationFailure, GenerationOptions, GenerationTask
from ledger.events.registration import Entrant
from ledger.identity import digest_of
from tests.commands.backends.generating_builders import ENOUGH, PROMPTS, WIDEST, answers
from tests.commands.backends.reciting import reciting

PLAIN = GenerationOptions(is_chat=False)

Build = Callable[..., Entrant]
Tasks = Callable[..., list[GenerationTask]]


def asked(owed: Sequence[GenerationTask], options: GenerationOptions) -> list[GenerationTask]:
    """Return the tasks, asked so."""
    return [replace(task, options=options) for task in owed]


@pytest.mark.parametrize("family", ["weights", "llama_weights", "gpt2_weights"])
def test_answers_do_not_depend_on_the_batch_however_they_are_asked_for(
    entrant: Build, tasks: Tasks, request: pytest.FixtureRequest, family: str
) -> None:
    """Rows that end at a stop text leave their batch early, and take nothing from the others."""
    folder = request.getfixturevalue(family)
    roster = [entrant(folder=folder, entrant_id=f"at {t}", temperature=t) for t in (None, 0.9)]
    either = [task for one in roster for task in tasks(one, PROMPTS)]
    owed = asked(either, GenerationOptions(is_chat=False, top_p=0.8, stop=("K", "x", "$")))

    alone, by_four, at_once = (answers(owed, n) for n in (1, 4 * WIDEST, ENOUGH))

    assert alone == by_four == at_once
    reasons = [answer.finish_reason for answer in alone]
    assert 0 < reasons.count("stop") < len(owed)
    assert len({answer.text for answer in alone}) > len(PROMPTS) // 2


def test_a_nucleus_changes_what_is_drawn_and_not_what_is_likeliest(
    entrant: Build, tasks: Tasks
) -> None:
    """One that holds the likeliest token alone leaves nothing to draw."""
    sampled = tasks(entrant(temperature=2.0), PROMPTS[:4])
    texts = [
        [answer.text for answer in answers(asked(sampled, GenerationOptions(top_p=p)))]
        for p in (1e-9, 0.5, 1.0)
    ]

    greedy = [answer.text for answer in answers(tasks(entrant(), PROMPTS[:4]))]
    assert texts[0] == greedy
    assert texts[2] == [answer.text for answer in answers(sampled)]
    assert len({*map(tuple, texts)}) == 3


def test_tasks_that_are_asked_otherwise_are_not_answered_together(
    entrant: Build, tasks: Tasks
) -> None:
    """A batch that took its first row's asking for all would end answers where nobody asked."""
    ways = [
        GenerationOptions(),
        GenerationOptions(top_p=0.3),
        GenerationOptions(stop=("e", "=")),
        PLAIN,
    ]
    owed = tasks(entrant(temperature=1.5), PROMPTS[:4])
    apart = [answer for way in ways for answer in answers(asked(owed, way))]

    every = [task for way in ways for task in asked(owed, way)]
    keys = [digest_of(n) for n in range(len(every))]
    together = answers([replace(t, response_key=k) for t, k in zip(every, keys, strict=True)])

    assert [replace(a, response_key=k) for a, k in zip(apart, keys, strict=True)] == together
    assert len({answer.generated_ids for answer in together}) > 8


def test_an_answer_ends_with_its_stop_text_and_costs_nothing_more(
    entrant: Build, tasks: Tasks, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Weights that go on with another question are the rule where no token ends a turn."""
    said = tokenizer("a dose\nQ: a patient")["input_ids"]
    (task,) = asked(
        tasks(entrant(max_new_tokens=40), ["?"]), GenerationOptions(is_chat=False, stop=("\nQ:",))
    )
    prompt_ids = encode_text(tokenizer, "?")
    loaded = reciting(tokenizer, said, behind=len(prompt_ids))
    n_passes: list[int] = []
    assert isinstance(loaded.model, torch.nn.Module)
    loaded.model.register_forward_hook(lambda *_: n_passes.append(1))

    (answer,) = answers([task], load=lambda *_: loaded)

    n_said = len(tokenizer("a dose\nQ:")["input_ids"])
    assert (answer.text, answer.finish_reason) == ("a dose", "stop")
    assert answer.generated_ids == tuple(said[:n_said])
    assert answer.n_generated_tokens == len(n_passes) == n_said
    assert (answer.prompt_ids, answer.n_prompt_tokens) == (prompt_ids, len(prompt_ids))


@pytest.mark.parametrize(
    ("options", "is_special", "has_template"),
    [
        (GenerationOptions(), True, True),
        (GenerationOptions(is_chat=False, stop=("<|im_end|>",)), True, False),
        (GenerationOptions(is_chat=False, stop=("<|im_end|>",)), False, False),
    ],
    ids=["by the template", "by a stop text that is a token", "by a stop text"],
)
def test_a_right_answer_is_not_made_wrong_by_the_mark_of_its_end(
    entrant: Build,
    tasks: Tasks,
    tokenizer: PreTrainedTokenizerFast,
    options: GenerationOptions,
    *,
    is_special: bool,
    has_template: bool,
) -> None:
    """The original read "positive<|im_end|>" here, and matched it with "positive"."""
    (task,) = asked(tasks(entrant(max_new_tokens=40), ["?"]), options)
    encode = encode_prompt if options.is_chat else encode_text
    spelled = [*tokenizer("positive<|im")["input_ids"], *tokenizer("_end|>")["input_ids"]]
    ended = spelled if not is_special else tokenizer("positive<|im_end|>")["input_ids"]
    loaded = reciting(
        tokenizer,
        [*ended, *tokenizer("positive")["input_ids"]],
        behind=len(encode(tokenizer, "?")),
        end_ids=end_of_turn(tokenizer) if has_template else frozenset({0}),
    )

    (answer,) = answers([task], load=lambda *_: loaded)

    assert (answer.text, answer.finish_reason) == ("positive", "stop")
    assert answer.generated_ids == tuple(ended)


def test_weights_without_a_chat_template_answer_plain_prompts(
    entrant: Build, tasks: Tasks, without_template: Path
) -> None:
    """Base weights have none, and are evaluated all the same."""
    owed = asked(tasks(entrant(folder=without_template), PROMPTS[:2]), PLAIN)

    assert [answer.n_generated_tokens for answer in answers(owed)] == [12, 12]


def test_weights_without_a_chat_template_are_refused_before_the_first_answer(
    entrant: Build, tasks: Tasks, without_template: Path
) -> None:
    """To a user's turn they would answer anything, and lose every comparison in silence."""
    owed = tasks(entrant(folder=without_template), PROMPTS[:2])
    mixed = [*asked(owed[:1], PLAIN), owed[1]]

    with pytest.raises(WeightsError, match=r"no chat template; .*instruction-tuned"):
        next(HfGenerator(1, device="cpu").generate(mixed))


def test_a_prompt_that_is_too_long_is_cut_where_it_may_be(
    entrant: Build, tasks: Tasks, tokenizer: PreTrainedTokenizerFast
) -> None:
    """And the answer says so, for a metric to count; its tokens are those that were read."""
    prompt = "a patient asks. " * 40 + "Which dose?"
    (task,) = asked(tasks(entrant(), [prompt]), GenerationOptions(may_truncate=True))

    (answer,) = answers([task])

    shown = str(tokenizer.decode(list(answer.prompt_ids)))
    assert shown.endswith("Which dose?<|im_end|>\n<|assistant|>\n")
    assert answer.is_truncated
    assert answer.n_prompt_tokens == len(answer.prompt_ids) <= 160 - 12


def test_a_prompt_of_which_nothing_fits_fails_with_the_numbers(
    entrant: Build, tasks: Tasks
) -> None:
    """There is no room for an answer however little is asked."""
    (task,) = asked(
        tasks(entrant(max_new_tokens=158), ["a dose"]), GenerationOptions(may_truncate=True)
    )

    ((failure,),) = HfGenerator(1, device="cpu").generate([task])

    assert isinstance(failure, GenerationFailure)
    assert failure.reason == "prompt_too_long"
    assert "158 new ones are more than the 160 positions" in failure.detail


@pytest.fixture
def without_template(
    weights: Path, copied: Callable[[Path], Path], tokenizer: PreTrainedTokenizerFast
) -> Path:
    """Give the Olmo 2 weights with a tokenizer that has no chat template, as base weights do."""
    folder = copied(weights)
    plain = copy.deepcopy(tokenizer)
    plain.chat_template = None
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    plain.save_pretrained(folder)
    return folder
