"""What comes of a Hydra's tokens: a text, how it was decided on, and how sure it is."""

import copy
import math
from typing import Any, cast

import pytest
import torch
from transformers import Olmo2ForCausalLM, PreTrainedTokenizerFast

from commands.backends.huggingface.generator import answer_tasks
from commands.backends.hydra import answers as uncertainty
from commands.backends.hydra.answers import Answer, answer_as_hydra, n_correctness_tokens, p_correct
from commands.backends.hydra.weights import load_hydra
from commands.backends.weights.answers import DecodingRules, PromptRow, make_ending
from commands.backends.weights.chat import encode, encode_prompt
from commands.backends.weights.loaded import LoadedWeights
from commands.ports import GeneratedText, GenerationFailure, GenerationOptions, GenerationTask
from ledger.events.registration import Entrant
from ledger.identity import digest_of
from tests.support.weights.hydra import (
    N_HEADS,
    HydraDecoding,
    HydraFiles,
    TableNet,
    adapter,
    copied_head,
    decode,
    hydra_entrant,
    start_row,
)

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def rated(hydra_files: HydraFiles) -> Entrant:
    """Give an entrant with an uncertainty head."""
    return hydra_entrant(hydra_files, uncertainty=adapter(hydra_files.uncertainty))


@pytest.fixture(scope="module")
def loaded(rated: Entrant) -> LoadedWeights:
    """Give its Hydra."""
    assert rated.hydra is not None
    return load_hydra(rated, rated.hydra, CPU)


@pytest.fixture
def own(loaded: LoadedWeights) -> LoadedWeights:
    """Give a copy, which a test may change."""
    return loaded._replace(model=copy.deepcopy(loaded.model))


def reciting(tokenizer: PreTrainedTokenizerFast, said: list[int]) -> LoadedWeights:
    """Return a Hydra that says these tokens, all of them different, to any prompt."""
    (line_end,) = tokenizer("\n")["input_ids"]  # by which the chat template opens an answer
    table = torch.zeros(N_HEADS, len(tokenizer), len(tokenizer))
    for token, after in zip([line_end, *said], said, strict=False):
        table[:, token, after] = 40.0
    return LoadedWeights(TableNet(table), tokenizer, CPU, frozenset({0, 3}), None)


def answered(
    loaded: LoadedWeights,
    entrant: Entrant,
    *prompts: str,
    options: GenerationOptions = GenerationOptions(),  # noqa: B008  # frozen
) -> list[Answer]:
    """Answer prompts in one batch, the seeds counting up."""
    tasks = [
        GenerationTask(digest_of([text, seed]), entrant, text, seed, options)
        for seed, text in enumerate(prompts)
    ]
    made = {
        each.response_key: each for batch in answer_tasks(loaded, tasks, 9999) for each in batch
    }
    return [made[task.response_key] for task in tasks]


def texts(answers: list[Answer]) -> list[GeneratedText]:
    """Return the answers, none of which may be a failure."""
    assert all(isinstance(answer, GeneratedText) for answer in answers)
    return [answer for answer in answers if isinstance(answer, GeneratedText)]


@pytest.mark.parametrize("bypass_jury", [False, True])
def test_a_letter_of_several_tokens_is_read_as_one(
    hydra_files: HydraFiles, tokenizer: PreTrainedTokenizerFast, *, bypass_jury: bool
) -> None:
    """Decoded token by token it would be noise, and a judge would know which entrant it reads."""
    entrant = hydra_entrant(hydra_files, bypass_jury=bypass_jury)
    tokens = tokenizer("é€ dose")["input_ids"]
    user, im_end = tokenizer.vocab["<|user|>"], tokenizer.vocab["<|im_end|>"]
    loaded = reciting(tokenizer, [user, *tokens, im_end])

    (answer,) = texts(answered(loaded, entrant, "a dose?"))

    assert answer.text == "é€ dose"
    assert answer.finish_reason == "stop"
    assert answer.n_generated_tokens == 1 + len(tokens) + 1  # special tokens and the end count
    assert answer.n_prompt_tokens == len(encode_prompt(tokenizer, "a dose?"))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"beta": 0.5},
        {"temperature": None},
        {"temperature": 1.5},
        {"max_new_tokens": 5},
        {"bypass_jury": True},
        {"top_p": 0.5},
    ],
)
def test_an_entrants_settings_are_those_that_it_is_decoded_by(
    hydra_files: HydraFiles, tokenizer: PreTrainedTokenizerFast, changed: dict[str, object]
) -> None:
    """One that was left on the way would make two entrants one."""
    table = 2 * torch.randn(N_HEADS, 270, 270, generator=torch.Generator().manual_seed(0))
    loaded = LoadedWeights(TableNet(table), tokenizer, CPU, frozenset(), None)
    of_entrant = {name: value for name, value in changed.items() if name != "top_p"}
    options = GenerationOptions(top_p=cast("float", changed.get("top_p", 1.0)))
    entrant = hydra_entrant(hydra_files, **of_entrant)

    (answer,) = texts(answered(loaded, entrant, "a dose?", options=options))

    known: dict[str, Any] = {"temperature": 0.98, "max_new_tokens": 12} | changed
    bypass_jury = bool(known.pop("bypass_jury", False))
    row = start_row(answer.prompt_ids, seed=0, n_heads=N_HEADS, bypass_jury=bypass_jury)
    decode(loaded.model, [row], HydraDecoding(**known))
    assert answer.diagnostics == row.diagnostics()
    assert answer.text == tokenizer.decode(row.tokens, skip_special_tokens=True)


def test_a_row_whose_logits_break_fails_and_says_where(
    hydra_files: HydraFiles, tokenizer: PreTrainedTokenizerFast
) -> None:
    """What was said until then is no answer."""
    tokens = tokenizer("ab")["input_ids"]
    loaded = reciting(tokenizer, tokens)
    assert isinstance(loaded.model, TableNet)
    loaded.model.table[:, tokens[1]] = math.nan

    (failure,) = answered(loaded, hydra_entrant(hydra_files), "a dose?")

    assert isinstance(failure, GenerationFailure)
    assert failure.reason == "not_finite"
    assert failure.detail == "the logits of new token 3 are not finite, in float32"


def test_an_answer_that_cannot_be_rated_fails(own: LoadedWeights, rated: Entrant) -> None:
    """Its rate would be missing from the calibration, and nobody would know of it."""
    own.model.head_layers[0].mlp.mlps[N_HEADS].get_parameter("up_proj.weight").data[0] = math.nan

    (failure,) = answered(own, rated, "a dose?")

    assert isinstance(failure, GenerationFailure)
    assert failure.reason == "not_finite"
    assert failure.detail == "the logits of the uncertainty head are not finite, in float32"


def test_an_answer_too_long_to_be_asked_about_fails(loaded: LoadedWeights, rated: Entrant) -> None:
    """Read again it may have more tokens than it was made of, and than there was room for."""
    assert rated.hydra is not None
    short = loaded._replace(n_positions=20)
    prompt = PromptRow(digest_of(0), encode_prompt(short.tokenizer, "a dose?"), 12, text="a dose?")
    rules = DecodingRules(make_ending(short.tokenizer, short.end_ids))

    (failure,) = answer_as_hydra(short, rated.hydra, rules, rated.dtype, [prompt])

    assert isinstance(failure, GenerationFailure)
    assert failure.reason == "prompt_too_long"
    assert failure.detail == (
        "the prompt, the answer and the question whether it is correct have more tokens than"
        " the 20 positions of the weights"
    )


TEXTS = [("a dose?", "a patient asks"), ("?", ""), ("what dose " * 4, "é€ " * 5)]


@pytest.fixture
def testimonies() -> list[uncertainty.ResponseState]:
    """Give responses with a witness each."""
    stream = torch.Generator().manual_seed(0)
    return [
        uncertainty.ResponseState(*texts, 3 * torch.randn(32, generator=stream)) for texts in TEXTS
    ]


def rates(loaded: LoadedWeights, testimonies: list[uncertainty.ResponseState]) -> list[float]:
    """Return what the head says of responses, all of which fit."""
    said = p_correct(loaded, testimonies)
    assert None not in said
    return [p for p in said if p is not None]


def p_by_hand(
    model: Olmo2ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    testimony: uncertainty.ResponseState,
) -> float:
    """Ask a whole model, and add the witness to what its last two layers are given."""
    text = (
        f"<|endoftext|><|user|>\n{testimony.prompt_text} Answer: {testimony.response_text}\n"
        "Task: Reply A (correct) or B (wrong): <|im_end|>\n<|assistant|>\n"
    )
    ids = torch.tensor([tokenizer.encode(text)])

    def testify(_: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        states = args[0].clone()
        states[0, -1] += testimony.first_state
        return states, *args[1:]

    with torch.inference_mode(), model.model.layers[2].register_forward_pre_hook(testify):
        logits = model(ids).logits[0, -1]
    a, b = (tokenizer.vocab[letter] for letter in "AB")
    return 1 / (1 + math.exp(logits[b] - logits[a]))


def test_it_is_asked_with_the_witness_at_the_last_token(
    loaded: LoadedWeights,
    hydra_files: HydraFiles,
    tokenizer: PreTrainedTokenizerFast,
    testimonies: list[uncertainty.ResponseState],
) -> None:
    """On the weights with its own LoRA alone, and in the very words of its training."""
    model = copied_head(hydra_files.weights, hydra_files.uncertainty)

    found = rates(loaded, testimonies)

    expected = [p_by_hand(model, tokenizer, each) for each in testimonies]
    assert found == pytest.approx(expected, abs=1e-5)
    assert max(found) - min(found) > 0.01  # or a constant would pass


def test_a_question_that_does_not_fit_is_not_asked(
    loaded: LoadedWeights, testimonies: list[uncertainty.ResponseState]
) -> None:
    """Beyond its positions a model says anything; at the last of them it still means it."""
    sound = rates(loaded, testimonies)
    asked = "{0.prompt_text} Answer: {0.response_text}\nTask: Reply A (correct) or B (wrong): "
    lengths = [len(encode_prompt(loaded.tokenizer, asked.format(each))) for each in testimonies]
    assert max(lengths) == lengths[2]

    whole = p_correct(loaded._replace(n_positions=lengths[2]), testimonies)
    cut = p_correct(loaded._replace(n_positions=lengths[2] - 1), testimonies)

    assert whole == sound
    assert cut == [pytest.approx(sound[0], abs=1e-6), pytest.approx(sound[1], abs=1e-6), None]


@pytest.mark.parametrize("response", ["a patient asks", "", "dose" * 9])
def test_the_question_takes_no_more_room_than_is_set_aside(
    tokenizer: PreTrainedTokenizerFast, response: str
) -> None:
    """A batch is planned before there is a response to ask about."""
    asked = f"a dose? Answer: {response}\nTask: Reply A (correct) or B (wrong): "

    n_set_aside = n_correctness_tokens(tokenizer)

    n_known = len(encode_prompt(tokenizer, "a dose?")) + len(encode(tokenizer, response))
    n_needed = len(encode_prompt(tokenizer, asked)) - n_known
    assert n_needed <= n_set_aside < n_needed + 20
