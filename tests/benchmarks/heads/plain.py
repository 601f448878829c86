"""Plain weights: rows that leave as they end, against transformers' own `generate`."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast

import torch
from transformers import GenerationConfig, Olmo2ForCausalLM, PreTrainedTokenizerBase

from commands.backends.weights.answers import DecodingRules, Ending, PromptRow
from commands.backends.weights.decoding import decode
from commands.backends.weights.loaded import LoadedWeights
from commands.backends.weights.sampling import SamplingSettings
from ledger.identity import digest_of
from tests.benchmarks.bench import Bench
from tests.benchmarks.heads.answering import per_second, seconds_on
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_least, compared

N_PROMPT_TOKENS: Final = 24
N_TOKENS: Final = 48  # of the longest answer; one in MEAN_LENGTH tokens ends one
MEAN_LENGTH: Final = 16


class PlainWork(NamedTuple):
    """What there is to answer, and how."""

    n_prompts: int
    n_rows: int  # of a batch
    n_new: int
    temperature: float | None

    def ends(self, n_tokens: int) -> frozenset[int]:
        """Return the tokens that end an answer, of so many."""
        return frozenset(range(0, n_tokens, MEAN_LENGTH))

    def prompts(self, n_tokens: int) -> list[PromptRow]:
        """Return the same prompts every time."""
        stream = torch.Generator("cpu").manual_seed(0)
        size = (self.n_prompts, N_PROMPT_TOKENS)
        ids = torch.randint(n_tokens, size, generator=stream, device=stream.device)
        return [
            PromptRow(digest_of(n), tuple(row), self.n_new, seed=n)
            for n, row in enumerate(ids.tolist())
        ]


def leaving(model: Olmo2ForCausalLM, work: PlainWork) -> int:
    """Answer; return how many tokens that were."""
    tokenizer = cast("PreTrainedTokenizerBase", None)  # nothing is encoded
    ends = work.ends(model.config.vocab_size)
    loaded = LoadedWeights(model, tokenizer, model.device, ends, None)
    prompts = work.prompts(model.config.vocab_size)
    rules = DecodingRules(Ending(ends), SamplingSettings(work.temperature))
    batches = (
        prompts[start : start + work.n_rows] for start in range(0, len(prompts), work.n_rows)
    )
    return sum(len(each.tokens) for batch in batches for each in decode(loaded, rules, batch))


@torch.inference_mode()
def by_generate(model: Olmo2ForCausalLM, work: PlainWork) -> int:
    """Answer by transformers' own loop, batch by batch; return how many tokens that were."""
    settings = {"do_sample": work.temperature is not None, "max_new_tokens": work.n_new}
    sampling = {"temperature": work.temperature, "top_k": 0} if work.temperature else {}
    ends = work.ends(model.config.vocab_size)
    ending = {"eos_token_id": sorted(ends), "pad_token_id": 0}
    config = GenerationConfig.from_dict(settings | sampling | ending)
    prompts = work.prompts(model.config.vocab_size)
    n_tokens = 0
    for start in range(0, len(prompts), work.n_rows):
        batch = [prompt.prompt_ids for prompt in prompts[start : start + work.n_rows]]
        ids = torch.tensor(batch, device=model.device)
        whole = cast("Any", model).generate(
            ids, attention_mask=torch.ones_like(ids), generation_config=config
        )
        n_tokens += sum(map(partial(_length, ends), whole[:, ids.shape[1] :].tolist()))
    return n_tokens


def _length(ends: frozenset[int], tokens: Sequence[int]) -> int:
    return next((n for n, token in enumerate(tokens, 1) if token in ends), len(tokens))


def measure(bench: Bench, model: Olmo2ForCausalLM) -> Iterator[Row]:
    """Compare tokens per second, greedy and sampled, at several sizes of a batch."""
    for n_rows in (8, 32):
        for temperature in (None, 1.0):
            n_new = bench.scaled(N_TOKENS, at_least=4)
            work = PlainWork(2 * n_rows, n_rows, n_new, temperature)
            yield _compared(bench, model, work)


def _compared(bench: Bench, model: Olmo2ForCausalLM, work: PlainWork) -> Row:
    ways = {"leaving": leaving, "generate": by_generate}
    rounds = interleaved(
        bench.n_rounds, {name: partial(rate_of, way, model, work) for name, way in ways.items()}
    )
    kind = "greedy" if work.temperature is None else "sampled"
    return compared(
        f"{kind}, {work.n_prompts} prompts at {work.n_rows} rows",
        per_second(rounds.median("leaving")),
        f"plain generate: {per_second(rounds.median('generate'))}",
        rounds.ratio("leaving", "generate"),
        at_least(1.0),
    )


def rate_of(
    way: Callable[[Olmo2ForCausalLM, PlainWork], int], model: Olmo2ForCausalLM, work: PlainWork
) -> float:
    """Answer in a way; return tokens per second, of the processor where it does the work."""
    n_tokens = 0

    def answer() -> None:
        nonlocal n_tokens
        n_tokens = way(model, work)

    took_s = seconds_on(model.device, answer)
    return n_tokens / took_s
