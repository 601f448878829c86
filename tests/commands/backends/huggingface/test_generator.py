"""The generator puts each prompt as its task asks, and answers each task once."""

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from commands.backends.huggingface.generator import encode_text, prompt_row
from commands.backends.huggingface.local import LocalModels
from commands.backends.weights.answers import PromptRow
from commands.backends.weights.chat import encode_prompt, end_of_turn
from commands.backends.weights.loaded import LoadedWeights
from commands.errors import WeightsError
from commands.ports import GeneratedText, GenerationFailure, GenerationOptions, GenerationTask
from ledger.events.registration import Entrant
from ledger.identity import digest_of
from tests.support.builders.events import entrant as entrant_named
from tests.support.weights.generating import ENOUGH, PROMPTS, WIDEST, answers, results, texts
from tests.support.weights.loads import changed, forget_tilde, kept, model_of, reciting, running_out
from tests.support.weights.tiny import with_template

PLAIN = GenerationOptions(is_chat=False)

Build = Callable[..., Entrant]
Tasks = Callable[..., list[GenerationTask]]


def asked(owed: Sequence[GenerationTask], options: GenerationOptions) -> list[GenerationTask]:
    """Return the tasks, asked so."""
    return [replace(task, options=options) for task in owed]


@pytest.mark.parametrize(
    "family",
    [
        "gpt2_weights",
        *(pytest.param(f"{each}weights", marks=pytest.mark.nightly) for each in ("", "llama_")),
    ],
)
def test_answers_do_not_depend_on_the_batch(
    entrant: Build, tasks: Tasks, request: pytest.FixtureRequest, family: str
) -> None:
    """A run resumed in other batches must be the same run; GPT-2 fails at the least slip.

    Rows that end at a stop text leave their batch early, and take nothing from the others.
    """
    folder = request.getfixturevalue(family)
    roster = [entrant(folder=folder, entrant_id=f"at {t}", temperature=t) for t in (None, 0.9)]
    either = [task for one in roster for task in tasks(one, PROMPTS[:5])]
    owed = asked(either, GenerationOptions(is_chat=False, top_p=0.8, stop=("K", "x", "$")))

    alone, by_four, at_once = (answers(owed, n) for n in (1, 4 * WIDEST, ENOUGH))

    assert alone == by_four == at_once
    reasons = [answer.finish_reason for answer in alone]
    assert 0 < reasons.count("stop") < len(owed)
    cut = [each.n_generated_tokens for each in alone if each.finish_reason == "length"]
    assert {*cut} == {12}
    assert len({answer.text for answer in alone}) > len(owed) // 2


def test_tasks_that_are_asked_otherwise_are_not_answered_together(
    entrant: Build, tasks: Tasks
) -> None:
    """A batch that took its first row's settings for all would make entrants alike."""
    ways = (GenerationOptions(top_p=0.3), GenerationOptions(stop=("e", "=")), PLAIN)
    warm = tasks(entrant(temperature=1.5, max_new_tokens=6), PROMPTS[:3])
    others = (entrant(max_new_tokens=n, temperature=t) for n, t in ((6, None), (6, 0.7), (4, None)))
    groups = [warm, *(asked(warm, way) for way in ways)]
    groups += [tasks(other, PROMPTS[:3]) for other in others]
    apart = [answer for group in groups for answer in answers(group)]

    every = [task for group in groups for task in group]
    keys = [digest_of(n) for n in range(len(every))]
    together = answers([replace(t, response_key=k) for t, k in zip(every, keys, strict=True)])

    assert [replace(a, response_key=k) for a, k in zip(apart, keys, strict=True)] == together
    assert len({answer.generated_ids for answer in together}) > 8


@pytest.mark.parametrize("bos", [True, False])
def test_a_plain_prompt_begins_with_bos_unless_that_is_the_tokenizers_part(
    entrant: Build, tasks: Tasks, tokenizer: PreTrainedTokenizerFast, *, bos: bool
) -> None:
    """This tokenizer has one, and does not add it by itself."""
    (task,) = asked(tasks(entrant(), ["?"]), GenerationOptions(is_chat=False, bos=bos))
    loaded = reciting(tokenizer, [1], behind=1)

    ids = prompt_row(loaded, task).prompt_ids

    assert ids == (*([tokenizer.bos_token_id] * bos), *tokenizer("?")["input_ids"])


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


@pytest.fixture
def templated(
    weights: Path, copied: Callable[[Path], Path], tokenizer: PreTrainedTokenizerFast
) -> Callable[[str | None], Path]:
    """Give a builder of the Olmo 2 weights with another chat template, or with none."""

    def build(template: str | None) -> Path:
        folder = copied(weights)
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        with_template(tokenizer, template).save_pretrained(folder)
        return folder

    return build


def test_weights_without_a_chat_template_answer_plain_prompts_and_no_others(
    entrant: Build, tasks: Tasks, templated: Callable[[str | None], Path]
) -> None:
    """To a user's turn base weights would answer anything: refused before the first answer."""
    owed = tasks(entrant(folder=templated(None)), PROMPTS[:2])
    plain = asked(owed, PLAIN)

    assert [answer.n_generated_tokens for answer in answers(plain)] == [12, 12]
    with pytest.raises(WeightsError, match=r"no chat template; .*instruction-tuned"):
        next(LocalModels(1, device="cpu").generate([plain[0], owed[1]]))


def test_a_conversation_that_the_template_cannot_show_fails_alone(
    entrant: Build,
    tasks: Tasks,
    templated: Callable[[str | None], Path],
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    """The others are answered, and it is told what the template says."""
    strict = "{% if messages|length > 2 %}{{ raise_exception('one question only') }}{% endif %}"
    folder = templated(strict + str(tokenizer.chat_template))
    plain, talk = tasks(entrant(folder=folder), PROMPTS[:2])
    talk = replace(talk, messages=(("user", "1"), ("assistant", "2"), ("user", "3")))

    (failure,), (answer,) = LocalModels(1, device="cpu").generate([plain, talk])

    assert isinstance(answer, GeneratedText)
    assert isinstance(failure, GenerationFailure)
    assert (failure.response_key, failure.reason) == (talk.response_key, "rejected")
    assert "one question only" in failure.detail


def greedy_by_hand(loaded: LoadedWeights, prompt: str, n_steps: int) -> list[int]:
    """Generate alone, without padding, mask or cache: one whole forward pass per token."""
    prompt_ids = encode_prompt(loaded.tokenizer, prompt)
    tokens = list(prompt_ids)
    for _ in range(n_steps):
        with torch.inference_mode():
            logits = model_of(loaded)(torch.tensor([tokens])).logits  # (1, T, V)
        tokens.append(int(logits[0, -1].argmax()))
        if tokens[-1] in loaded.end_ids:
            break
    return tokens[len(prompt_ids) :]


def test_greedy_answers_are_those_of_a_loop_by_hand(entrant: Build, tasks: Tasks) -> None:
    """Padding, cache and processors are there for speed; the answer is the plain argmax."""
    owed = tasks(entrant(), PROMPTS[:4])
    loaded = kept(owed[0].entrant, torch.device("cpu"))

    made = answers(owed)

    expected = [greedy_by_hand(loaded, prompt, 12) for prompt in PROMPTS[:4]]
    assert [answer.n_generated_tokens for answer in made] == [len(tokens) for tokens in expected]
    assert [answer.text for answer in made] == [
        loaded.tokenizer.decode(tokens, skip_special_tokens=True) for tokens in expected
    ]


def test_a_prompt_that_leaves_no_room_for_the_answer_fails_with_the_numbers(
    entrant: Build, tasks: Tasks
) -> None:
    """Cutting the prompt would drop the question; beyond its positions the model babbles."""
    owed = tasks(entrant(), ["dose " * 200, "a dose"])

    too_long, fitting = results(owed)

    assert isinstance(too_long, GenerationFailure)
    assert too_long.reason == "prompt_too_long"
    assert "12 new ones are more than the 160 positions" in too_long.detail
    assert isinstance(fitting, GeneratedText)


def test_running_out_of_memory_on_the_way_loses_no_answer(entrant: Build, tasks: Tasks) -> None:
    """Some rows have ended then, and others have taken their places."""
    owed = asked(tasks(entrant(temperature=0.9), PROMPTS), replace(PLAIN, stop=("K", "x", "$")))
    passes = count(1)
    once = running_out(lambda _: next(passes) == 9)

    assert answers(owed, 5 * WIDEST, once) == answers(owed)


def test_one_row_that_does_not_fit_fails_alone(entrant: Build, tasks: Tasks) -> None:
    """At one row there is nothing left to halve."""
    made = results(tasks(entrant(), PROMPTS[:3]), load=running_out(lambda _: True))

    assert [r.reason for r in made if isinstance(r, GenerationFailure)] == ["out_of_memory"] * 3


def test_broken_logits_fail_their_row_and_no_other(entrant: Build, tasks: Tasks) -> None:
    """A text made of NaN is garbage that a judge would rate."""
    owed = tasks(entrant(), ["a dose", "a dose ~", "dose"])
    sound = results(owed)

    made = results(owed, load=changed(forget_tilde))

    assert isinstance(made[1], GenerationFailure)
    assert (made[1].reason, made[1].detail) == (
        "not_finite",
        "the logits of new token 1 are not finite, in float32",
    )
    assert (made[0], made[2]) == (sound[0], sound[2])


def test_decoding_settings_beside_the_weights_do_not_count(
    entrant: Build, tasks: Tasks, weights: Path, respecified: Callable[..., Path]
) -> None:
    """Instruct weights often bring a repetition penalty and top-k; the entrant says neither."""
    own = {"do_sample": True, "top_k": 3, "temperature": 2.0, "repetition_penalty": 5.0}
    folder = respecified(weights, "generation_config.json", **own)

    assert texts(tasks(entrant(folder=folder), PROMPTS[:2])) == texts(tasks(entrant(), PROMPTS[:2]))


def test_generating_is_silent_and_leaves_the_global_random_state_alone(
    entrant: Build, tasks: Tasks, adapters: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """The terminal belongs to tourney, and nothing may depend on what was generated before."""
    before = torch.get_rng_state(), random.getstate()

    results(tasks(entrant(adapters[0], temperature=0.9), PROMPTS[:2]))

    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert capfd.readouterr() == ("", "")


CPU = torch.device("cpu")
BEGIN, QUESTION = "<|endoftext|><|user|>\n", " Which dose?<|im_end|>\n<|assistant|>\n"
LONG = "A patient asks. " * 20 + "Which dose?"


@pytest.fixture
def row(
    entrant: Build, tasks: Tasks, tokenizer: PreTrainedTokenizerFast
) -> Callable[..., PromptRow]:
    """Give a builder of rows for weights of so many positions; 12 new tokens are asked for."""

    def build(text: str, n_positions: int | None, **options: object) -> PromptRow:
        loaded = LoadedWeights(None, tokenizer, CPU, frozenset(), n_positions)
        (task,) = tasks(entrant(), [text])
        return prompt_row(loaded, replace(task, options=GenerationOptions(**options)))  # type: ignore[arg-type]  # as wanted

    return build


def test_the_token_that_begins_texts_is_not_doubled_nor_made_up(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    """Only an empty text needs something to be followed; harnesses take the end token there."""
    without = copy.deepcopy(tokenizer)
    without.bos_token = None

    assert encode_text(tokenizer, "<|endoftext|>a dose") == encode_text(tokenizer, "a dose")
    assert without.decode(list(encode_text(without, "a dose"))) == "a dose"
    assert encode_text(without, "") == (without.eos_token_id,)


def test_a_chat_loses_the_beginning_of_what_the_user_says(
    row: Callable[..., PromptRow], tokenizer: PreTrainedTokenizerFast
) -> None:
    """The question stands at the end, and the template says whose turn it is."""
    cut = row(LONG, 80, may_truncate=True)

    shown = str(tokenizer.decode(list(cut.prompt_ids)))
    assert shown.startswith(BEGIN)
    assert shown.endswith(QUESTION)
    assert cut.is_truncated
    assert cut.text == shown.removeprefix(BEGIN).partition("<|im_end|>")[0]
    assert LONG.endswith(cut.text)
    assert 80 - 4 < cut.n_tokens <= 80


def test_a_chat_of_several_turns_loses_its_first_examples(
    entrant: Build, tasks: Tasks, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Who says what stays, and so does the question."""
    (task,) = tasks(entrant(), ["as recorded"])
    messages = (("user", LONG), ("assistant", "20 mg"), ("user", "Which dose?"))
    asked = replace(task, options=GenerationOptions(may_truncate=True), messages=messages)
    loaded = LoadedWeights(None, tokenizer, CPU, frozenset(), 110)

    cut = prompt_row(loaded, asked)

    shown = str(tokenizer.decode(list(cut.prompt_ids)))
    assert shown.endswith(
        "<|assistant|>\n20 mg<|im_end|>\n<|user|>\nWhich dose?<|im_end|>\n<|assistant|>\n"
    )
    assert cut.is_truncated
    assert cut.n_tokens <= 110
    assert shown.startswith(BEGIN)


@pytest.mark.parametrize("is_chat", [True, False])
def test_a_prompt_that_begins_as_the_tokenizer_says_keeps_its_last_tokens(
    row: Callable[..., PromptRow], *, is_chat: bool
) -> None:
    """As lm-evaluation-harness 0.4.13 cuts it, whatever the first tokens are."""
    own: dict[str, object] = {"may_truncate": True, "bos": False, "is_chat": is_chat}
    whole, cut, none = (row(LONG, limit, **own) for limit in (None, 60, 12))

    assert cut.n_tokens == 60
    assert cut.prompt_ids == whole.prompt_ids[-len(cut.prompt_ids) :]
    assert (cut.is_truncated, none) == (True, whole)


class _Joining:
    """A tokenizer of letters, to which "ab" is one."""

    bos_token_id = None

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        """Return a token of a letter each, and one more."""
        assert not add_special_tokens
        return {"input_ids": [*range(len(text.replace("ab", "x")) + 1)]}


@given(st.text("ab c", max_size=60), st.integers(12, 60))
def test_whatever_the_tokens_are_what_is_left_fits(text: str, limit: int) -> None:
    """Leaving a letter out can add a token, here where "ab" is one."""
    options = GenerationOptions(is_chat=False, may_truncate=True)
    who = entrant_named("base", max_new_tokens=12)
    task = GenerationTask(digest_of(text), who, text, 0, options)
    tokenizer = cast("PreTrainedTokenizerFast", _Joining())
    whole = LoadedWeights(None, tokenizer, CPU, frozenset(), None)

    left = prompt_row(whole._replace(n_positions=limit), task)

    if limit < 12 + 1:
        assert left == prompt_row(whole, task)
    else:
        assert left.n_tokens <= limit
        assert text.endswith(left.text)
        assert left.is_truncated == (left.text != text)
