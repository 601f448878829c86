"""The generator answers each task once, and a task's answer is its own."""

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from commands.backends.huggingface.generator import HfGenerator
from commands.backends.weights.chat import encode_prompt
from commands.backends.weights.loaded import LoadedWeights, load_weights
from commands.ports import GeneratedText, GenerationFailure, GenerationTask
from ledger.events.registration import Entrant
from ledger.identity import digest_of
from tests.commands.backends.generating_builders import (
    ENOUGH,
    PROMPTS,
    WIDEST,
    answers,
    results,
    texts,
)
from tests.commands.backends.loads import (
    changed,
    ending_at,
    forget_tilde,
    model_of,
    rows_above,
    running_out,
)

Build = Callable[..., Entrant]
Tasks = Callable[..., list[GenerationTask]]


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


@pytest.mark.parametrize("temperature", [None, 0.9])
@pytest.mark.parametrize("family", ["weights", "llama_weights", "gpt2_weights"])
def test_answers_do_not_depend_on_the_batch(
    entrant: Build,
    tasks: Tasks,
    request: pytest.FixtureRequest,
    family: str,
    temperature: float | None,
) -> None:
    """A run resumed in other batches must be the same run; GPT-2 fails at the least slip."""
    folder = request.getfixturevalue(family)
    owed = tasks(entrant(folder=folder, temperature=temperature), PROMPTS)

    alone, by_four, at_once = (answers(owed, n) for n in (1, 4 * WIDEST, ENOUGH))

    assert alone == by_four == at_once
    assert len({answer.text for answer in alone}) > len(PROMPTS) // 2


def test_each_batch_is_handed_over_when_it_is_done(entrant: Build, tasks: Tasks) -> None:
    """What is handed over is recorded, so a crash costs one batch; the time is the batch's."""
    owed = tasks(entrant(), PROMPTS)

    alone = list(HfGenerator(1, device="cpu").generate(owed))
    at_once = list(HfGenerator(ENOUGH, device="cpu").generate(owed))

    assert [len(batch) for batch in alone] == [1] * 16
    assert [len(batch) for batch in at_once] == [16]
    times = {result.elapsed_s for result in at_once[0] if isinstance(result, GeneratedText)}
    assert len(times) == 1
    assert min(times) > 0


def test_greedy_answers_are_those_of_a_loop_by_hand(entrant: Build, tasks: Tasks) -> None:
    """Padding, cache and processors are there for speed; the answer is the plain argmax."""
    owed = tasks(entrant(), PROMPTS)
    loaded = load_weights(owed[0].entrant, torch.device("cpu"))

    made = answers(owed)

    expected = [greedy_by_hand(loaded, prompt, 12) for prompt in PROMPTS]
    assert [answer.n_generated_tokens for answer in made] == [len(tokens) for tokens in expected]
    assert [answer.text for answer in made] == [
        loaded.tokenizer.decode(tokens, skip_special_tokens=True) for tokens in expected
    ]


def test_another_rows_seed_does_not_change_my_answer(entrant: Build, tasks: Tasks) -> None:
    """Adding a prompt to the bank must not change what was said to the others."""
    sampled = entrant(temperature=1.0)
    mine = tasks(sampled, PROMPTS[:1], first_seed=5)

    mine_first, *some = texts(mine + tasks(sampled, PROMPTS[1:4], first_seed=10))
    *others, mine_last = texts(tasks(sampled, PROMPTS[1:4], first_seed=90) + mine)

    assert mine_first == mine_last
    assert some != others


def test_samples_of_one_prompt_differ_by_their_seeds(entrant: Build, tasks: Tasks) -> None:
    """Several samples per prompt are asked for to see the spread."""
    owed = tasks(entrant(temperature=1.0), ["a dose"] * 8)

    assert len(set(texts(owed))) > 1


def test_entrants_in_one_load_keep_their_own_decoding(entrant: Build, tasks: Tasks) -> None:
    """A batch that took its first row's settings for all would make entrants alike."""
    roster = (
        entrant(),
        entrant(temperature=0.7),
        entrant(temperature=2.5),
        entrant(max_new_tokens=5),
    )
    alone = [text for one in roster for text in texts(tasks(one, PROMPTS[:4]))]

    owed = [task for one in roster for task in tasks(one, PROMPTS[:4])]
    renamed = [dataclasses.replace(t, response_key=digest_of(n)) for n, t in enumerate(owed)]

    assert texts(renamed) == alone
    assert len(set(alone)) > len(PROMPTS[:4])


def test_an_adapter_changes_what_is_said(
    entrant: Build, tasks: Tasks, adapters: tuple[Path, Path]
) -> None:
    """The whole way from an entrant's adapters to its text, not only the merge."""
    assert texts(tasks(entrant(), PROMPTS)) != texts(tasks(entrant(*adapters), PROMPTS))


def test_an_answer_stops_at_any_of_the_end_tokens(entrant: Build, tasks: Tasks) -> None:
    """The end token is counted, as it was generated and paid for, but it is not said."""
    owed = tasks(entrant(), ["a dose"])
    plain = load_weights(owed[0].entrant, torch.device("cpu"))
    tokens = greedy_by_hand(plain, "a dose", 12)
    end = next(n for n in range(2, 12) if tokens[n] not in tokens[:n])

    (made,) = answers(owed, load=ending_at(0, tokens[end]))

    assert (made.finish_reason, made.n_generated_tokens) == ("stop", end + 1)
    assert made.text == plain.tokenizer.decode(tokens[:end], skip_special_tokens=True)


def test_an_answer_without_an_end_token_is_cut_at_its_length(
    entrant: Build, tasks: Tasks, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Answers cut short are a headline of their own; they must not pass for whole ones."""
    owed = tasks(entrant(max_new_tokens=3), ["a dose"])

    (made,) = answers(owed, load=ending_at())

    assert (made.finish_reason, made.n_generated_tokens) == ("length", 3)
    assert made.n_prompt_tokens == len(encode_prompt(tokenizer, "a dose"))


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


@pytest.mark.parametrize("n_rows", [1, 5])
def test_running_out_of_memory_halves_the_batch_and_changes_nothing(
    entrant: Build, tasks: Tasks, n_rows: int
) -> None:
    """Rows that are tried again start their random streams again."""
    owed = tasks(entrant(temperature=0.8), PROMPTS)

    assert answers(owed, load=running_out(rows_above(n_rows))) == answers(owed)


def test_one_row_that_does_not_fit_fails_alone(entrant: Build, tasks: Tasks) -> None:
    """At one row there is nothing left to halve."""
    made = results(tasks(entrant(), PROMPTS[:3]), load=running_out(rows_above(0)))

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


def test_a_broken_row_is_given_up_at_once(entrant: Build, tasks: Tasks) -> None:
    """Weights that overflow in float16 would cost the whole bank's time for nothing."""
    n_passes: list[int] = []

    def break_and_count(model: PreTrainedModel) -> None:
        model.get_parameter("lm_head.weight").data[5] = torch.nan
        model.register_forward_hook(lambda *_: n_passes.append(1))

    results(tasks(entrant(), PROMPTS[:3]), load=changed(break_and_count))

    assert len(n_passes) == 1


def test_decoding_settings_beside_the_weights_do_not_count(
    entrant: Build, tasks: Tasks, weights: Path, respecified: Callable[..., Path]
) -> None:
    """Instruct weights often bring a repetition penalty and top-k; the entrant says neither."""
    own = {"do_sample": True, "top_k": 3, "temperature": 2.0, "repetition_penalty": 5.0}
    folder = respecified(weights, "generation_config.json", **own)

    assert texts(tasks(entrant(folder=folder), PROMPTS)) == texts(tasks(entrant(), PROMPTS))


def test_generating_leaves_the_global_random_state_alone(
    entrant: Build, tasks: Tasks, adapters: tuple[Path, Path]
) -> None:
    """Nothing else in the process may depend on whether something was generated."""
    before = torch.get_rng_state(), random.getstate()

    results(tasks(entrant(adapters[0], temperature=0.9), PROMPTS[:2]))

    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]


def test_nothing_is_printed(
    entrant: Build, tasks: Tasks, adapters: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """The terminal belongs to tourney's own progress and results."""
    results(tasks(entrant(adapters[0]), PROMPTS[:2]))

    assert capfd.readouterr() == ("", "")
