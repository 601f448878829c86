"""The uncertainty head is asked as it was trained, of each response by itself."""

import math

import pytest
import torch
from transformers import Olmo2ForCausalLM, PreTrainedTokenizerFast

from commands.backends.hydra import answers as uncertainty
from commands.backends.hydra.answers import n_correctness_tokens, p_correct
from commands.backends.hydra.weights import LoadedHydra, load_hydra
from commands.backends.weights.chat import encode, encode_prompt
from tests.commands.backends.hydra_builders import HydraFiles, adapter, copied_head, hydra_entrant

TEXTS = [("a dose?", "a patient asks"), ("?", ""), ("what dose " * 4, "é€ " * 5)]


@pytest.fixture(scope="module")
def loaded(hydra_files: HydraFiles) -> LoadedHydra:
    """Give a Hydra with an uncertainty head."""
    entrant = hydra_entrant(hydra_files, uncertainty=adapter(hydra_files.uncertainty))
    assert entrant.hydra is not None
    return load_hydra(entrant, entrant.hydra, torch.device("cpu"))


@pytest.fixture
def testimonies() -> list[uncertainty.ResponseState]:
    """Give responses with a witness each."""
    stream = torch.Generator().manual_seed(0)
    return [
        uncertainty.ResponseState(*texts, 3 * torch.randn(32, generator=stream)) for texts in TEXTS
    ]


def rates(loaded: LoadedHydra, testimonies: list[uncertainty.ResponseState]) -> list[float]:
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
    loaded: LoadedHydra,
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


def test_a_response_is_rated_by_itself(
    loaded: LoadedHydra, testimonies: list[uncertainty.ResponseState]
) -> None:
    """Padding and neighbours have no say."""
    together = rates(loaded, testimonies)

    alone = [p for each in testimonies for p in rates(loaded, [each])]
    backwards = rates(loaded, testimonies[::-1])

    assert alone == pytest.approx(together, abs=1e-6)
    assert backwards[::-1] == pytest.approx(together, abs=1e-6)
    assert all(0 <= p <= 1 for p in together)


def test_the_witness_counts(
    loaded: LoadedHydra, testimonies: list[uncertainty.ResponseState]
) -> None:
    """Two heads may give the same text, one of them less sure of it."""
    others = [each._replace(first_state=-each.first_state) for each in testimonies]

    for p, other in zip(rates(loaded, testimonies), rates(loaded, others), strict=True):
        assert abs(p - other) > 1e-3


def test_what_is_no_number_stays_none(
    loaded: LoadedHydra, testimonies: list[uncertainty.ResponseState]
) -> None:
    """It must be seen, and only where it is."""
    sound = rates(loaded, testimonies)
    broken = testimonies[1]._replace(first_state=torch.full((32,), math.nan))

    found = rates(loaded, [testimonies[0], broken, testimonies[2]])

    assert math.isnan(found[1])
    assert [found[0], found[2]] == pytest.approx([sound[0], sound[2]], abs=1e-6)


def test_a_question_that_does_not_fit_is_not_asked(
    loaded: LoadedHydra, testimonies: list[uncertainty.ResponseState]
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


def test_nothing_asked_is_nothing_answered(loaded: LoadedHydra) -> None:
    """Every row of a batch may have failed."""
    assert rates(loaded, []) == []


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
