"""The reader weighs each passage as by itself, whatever is read beside it."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast

import pytest
import torch
from peft import PeftModel
from transformers import (
    MambaForCausalLM,
    MistralForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from commands.backends.weights.chat import decode_text
from commands.backends.weights.loaded import LoadedWeights, as_loaded
from commands.ports import ContinuationLikelihood, LikelihoodFailure
from ledger.events.registration import Entrant
from tests.support.weights.loads import (
    changed,
    forget_tilde,
    kept,
    kept_copy,
    model_of,
    running_out,
)
from tests.support.weights.reading import (
    ENOUGH,
    facts,
    likelihood_by_hand,
    log_likelihoods,
    log_p_by_hand,
    passages_of,
    readings,
    results,
)
from tests.support.weights.tiny import tiny

Build = Callable[..., Entrant]
CPU = torch.device("cpu")
QUESTION = "a patient asks: " + 6 * "which dose, and how often? "
PAIRS = [
    *((QUESTION, text) for text in (" a dose", " none", " x", " y", " a patient asks")),
    *((QUESTION[10:], text) for text in ("~", "~ dose")),
    *(("dose " * n, "x" * (1 + n % 3)) for n in range(5)),
    ("", "a dose"),
]


def in_float64(entrant: Entrant) -> PreTrainedModel:
    """Return an entrant's weights in float64."""
    return model_of(kept_copy(entrant, CPU)).double()


@pytest.mark.parametrize(
    "family",
    [
        *(pytest.param(f"{each}weights", marks=pytest.mark.nightly) for each in ("", "llama_")),
        "gpt2_weights",
    ],
)
def test_log_likelihoods_are_those_of_float64(
    entrant: Build, request: pytest.FixtureRequest, family: str
) -> None:
    """Whatever the batch: padding that is seen, or a position that slips, shows at once."""
    one = entrant(folder=request.getfixturevalue(family))
    model = in_float64(one)

    by_batch = [readings(passages_of(one, *PAIRS), n) for n in (1, 4 * 130, ENOUGH)]

    by_hand = [likelihood_by_hand(model, each) for each in by_batch[0]]
    for read in by_batch:
        assert log_likelihoods(read) == pytest.approx(by_hand, rel=0, abs=1e-4)
        assert facts(read) == facts(by_batch[0])


@pytest.mark.parametrize(
    "build",
    [
        partial(tiny, MistralForCausalLM, sliding_window=16),
        partial(tiny, MambaForCausalLM, state_size=8),
    ],
    ids=["sliding", "recurrent"],
)
def test_weights_that_remember_otherwise_are_read_right(
    entrant: Build, tokenizer: PreTrainedTokenizerFast, build: Callable[..., PreTrainedModel]
) -> None:
    """By attention that reaches 16 tokens back, or with a state that cannot be kept in mind."""
    model = build(seed=5)
    load = LoadedWeights(model, tokenizer, CPU, frozenset(), 160)

    read = readings(passages_of(entrant(), *PAIRS), load=lambda *_: load)

    in_full = copy.deepcopy(model).double()
    by_hand = [likelihood_by_hand(in_full, each) for each in read]
    assert log_likelihoods(read) == pytest.approx(by_hand, rel=0, abs=1e-4)


def test_weights_with_an_adapter_beside_them_are_read_as_the_model_within(
    entrant: Build, tokenizer: PreTrainedTokenizerFast, lora_model: PeftModel
) -> None:
    """Peft's model passes on what it is told of the past, and does not say that it does."""
    whole, within = (
        as_loaded(cast("PreTrainedModel", model.eval()), tokenizer)
        for model in (lora_model, lora_model.get_base_model())
    )
    passages = passages_of(entrant(), *PAIRS)

    read = readings(passages, load=lambda *_: whole)

    expected = readings(passages, load=lambda *_: within)
    assert log_likelihoods(read) == pytest.approx(log_likelihoods(expected), rel=0, abs=1e-4)
    assert facts(read) == facts(expected)


def test_the_likeliest_token_is_told_in_each_place(entrant: Build) -> None:
    """By these it is known whether an answer is what the entrant itself would have said.

    A document has thousands, which are decoded only where somebody reads them.
    """
    [hidden] = passages_of(entrant(), ("a dose", " and a patient"))

    [read, shown] = readings([hidden, replace(hidden, key="shown", shows_predicted=True)])

    log_p = log_p_by_hand(in_float64(entrant()), [*read.context_ids, *read.text_ids])
    places = slice(len(read.context_ids) - 1, -1)
    assert read.predicted_ids == tuple(log_p[places].argmax(dim=-1).tolist())
    tokenizer = kept(entrant(), CPU).tokenizer
    assert read.predicted == ""
    assert shown.predicted == decode_text(tokenizer, shown.predicted_ids) != ""


def test_choices_of_one_token_need_one_row(entrant: Build) -> None:
    """All that tells them apart is said behind their context."""
    n_read: list[int] = []

    read = readings(
        passages_of(entrant(), *(("(", letter) for letter in "ABCD")),
        load=changed(
            lambda model: model.register_forward_pre_hook(
                lambda _, args: n_read.append(args[0].numel())
            )
        ),
    )

    assert sum(n_read) == len(read[0].context_ids)
    assert len({*log_likelihoods(read)}) == 4


def test_a_row_that_does_not_fit_fails_alone(entrant: Build) -> None:
    """At one row there is nothing left to halve."""
    made = results(passages_of(entrant(), *PAIRS[:3]), load=running_out(lambda _: True))

    assert [r.reason for r in made if isinstance(r, LikelihoodFailure)] == ["out_of_memory"] * 3


def test_logits_that_are_no_numbers_fail_their_passage_and_no_other(entrant: Build) -> None:
    """NaN compares as it pleases, and would be an answer."""
    passages = passages_of(entrant(), *PAIRS)
    sound = results(passages)

    made = results(passages, load=changed(forget_tilde))

    behind_it = PAIRS.index((QUESTION[10:], "~ dose"))
    assert [n for n, each in enumerate(made) if isinstance(each, LikelihoodFailure)] == [behind_it]
    assert made[behind_it] == LikelihoodFailure(
        str(behind_it), "not_finite", "the log-likelihood is not finite, in float32"
    )
    assert [each for each in made if isinstance(each, ContinuationLikelihood)] == pytest.approx(
        [each for n, each in enumerate(sound) if n != behind_it]
    )


def test_a_text_without_a_token_is_not_read(entrant: Build) -> None:
    """Its likelihood would be 1, and its perplexity perfect."""
    made = results(passages_of(entrant(), ("a dose", ""), ("", "")))

    assert [each.reason for each in made if isinstance(each, LikelihoodFailure)] == ["empty"] * 2


def test_a_document_of_one_token_is_weighed(entrant: Build) -> None:
    """Behind the token that begins a text, where others count it as perfect."""
    [read] = readings(passages_of(entrant(), ("", "x"), rolls=True))

    assert (len(read.context_ids), len(read.text_ids), read.n_windows) == (1, 1, 1)
    by_hand = likelihood_by_hand(in_float64(entrant()), read)
    assert read.log_likelihood == pytest.approx(by_hand, abs=1e-4)


def test_a_context_longer_than_the_window_loses_its_beginning(entrant: Build) -> None:
    """Left whole, all choices would weigh the same, and the first would win."""
    made = readings(passages_of(entrant(), *(("x" * 400 + "~", each) for each in ("A", "BC", "A"))))

    assert all(each.is_truncated for each in made)
    assert [len(each.context_ids) + len(each.text_ids) for each in made] == [161] * 3
    assert len({*log_likelihoods(made)}) == 2
    model = in_float64(entrant())
    by_hand = [likelihood_by_hand(model, each) for each in made]
    assert log_likelihoods(made) == pytest.approx(by_hand, rel=0, abs=1e-4)


def test_a_text_longer_than_the_window_is_not_read(entrant: Build) -> None:
    """Nor cut: that would be another text."""
    [made] = results(passages_of(entrant(), ("x", "y" * 161)))

    assert made == LikelihoodFailure(
        "0", "too_long", "the text's 161 tokens are more than the 160 positions of the weights"
    )


def test_a_long_document_is_weighed_window_by_window(entrant: Build) -> None:
    """Each token once, and behind as much as its window holds."""
    n_chars = 401
    text = ("~xyz" * 101)[:n_chars]
    [read] = readings(passages_of(entrant(), ("", text), rolls=True))

    assert len(read.text_ids) == n_chars
    assert read.n_windows == math.ceil(n_chars / 160)
    by_hand = _rolled(in_float64(entrant()), [*read.context_ids, *read.text_ids], 160)
    assert read.log_likelihood == pytest.approx(by_hand, abs=1e-3)


def test_nothing_is_printed(entrant: Build, capfd: pytest.CaptureFixture[str]) -> None:
    """Tokenizers warn of texts that are longer than the weights are."""
    results(passages_of(entrant(), ("x" * 900, "y")))

    assert capfd.readouterr() == ("", "")


def _rolled(model: PreTrainedModel, ids: list[int], limit: int) -> float:
    """Weigh ids[1:] by blocks of `limit`, each behind the `limit` tokens before its last."""
    total = 0.0
    for begin in range(1, len(ids), limit):
        end = min(begin + limit, len(ids))
        first = max(0, end - 1 - limit)
        log_p = log_p_by_hand(model, ids[first : end - 1])
        total += sum(float(log_p[n - 1 - first, ids[n]]) for n in range(begin, end))
    return total
