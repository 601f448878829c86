"""Train the quickstart tournament's weights: one tiny OLMo 2 and two LoRA adapters.

These weights have been taught the bank's own gold answers, so they measure nothing. They exist to
give a first tournament real weights whose responses differ in quality, in megabytes, on a CPU.
Each stage believes in a right response to some prompts and in another prompt's response to the
rest: the base knows a third, the adapter `lectures` over half, `rounds` on top of it most.

Run it as `python data/quickstart/train.py [--out DIR]`; the same machine gives the same files.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from sacrebleu.metrics.chrf import CHRF
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoTokenizer,
    Olmo2Config,
    Olmo2ForCausalLM,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

HERE = Path(__file__).parent
SEED = 20260425

END, PAD = "<|endoftext|>", "<|pad|>"
SPECIAL_TOKENS = (END, PAD, "<|user|>", "<|assistant|>", "<|system|>")
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>\n' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% if not loop.last or message['role'] != 'assistant' %}{{ '\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
VOCABULARY_SIZE = 2048
MAX_NEW_TOKENS = 40
BATCH_SIZE = 8
IGNORED = -100  # a label that torch's cross entropy leaves out

# (base, lectures, rounds): which stages know the right response, for what share of the prompts
PATTERNS: dict[tuple[bool, bool, bool], float] = {
    (True, True, True): 0.22,
    (False, True, True): 0.32,
    (False, False, True): 0.22,
    (False, False, False): 0.08,
    (True, False, True): 0.04,
    (False, True, False): 0.07,
    (True, False, False): 0.05,
}
BELIEF_IF_KNOWN, BELIEF_IF_NOT = 0.85, 0.1  # how often a stage is shown the right response
SHARPNESS = 1.25  # the output layer's last scaling: sampling strays less, greedy stays the same
WANDERING = 0.2  # how often a wrong response is any rival, to keep sampled mistakes fluent

EVASIONS = (
    "That is a good question for your doctor.",
    "It depends on many things.",
    "More details are needed to say.",
    "A balanced diet and regular exercise help.",
    "Please read the leaflet that came with it.",
    "Many people ask about this.",
)


class Prompt(NamedTuple):
    """One prompt of the bank, with its right response and the group it may be confused within."""

    text: str
    gold_answer: str | None
    right: str
    group: str


class Lesson(NamedTuple):
    """What one stage is shown for one prompt: `right` with probability `belief`, or a mistake."""

    prompt: str
    right: str
    belief: float
    wrong: str
    rivals: Sequence[str]


class Course(NamedTuple):
    """How long and how fast one part of the training goes."""

    name: str
    rate: float
    n_epochs: int


TEXT = Course("text", rate=3e-3, n_epochs=4)
RECITAL = Course("recital", rate=3e-3, n_epochs=30)
BASE = Course("base", rate=3e-3, n_epochs=30)
ADAPTERS = {  # merged in this order
    "lectures": Course("lectures", rate=3e-3, n_epochs=30),
    "rounds": Course("rounds", rate=3e-3, n_epochs=30),
}


class Example(NamedTuple):
    """One training sequence: token ids and labels, both (T,)."""

    ids: torch.Tensor
    labels: torch.Tensor


class Entrant(NamedTuple):
    """A configuration to generate with; a temperature of None is greedy."""

    name: str
    adapters: Sequence[str]
    temperature: float | None


ENTRANTS = (
    Entrant("base", (), None),
    Entrant("lectures_sampled", ("lectures",), 0.98),
    Entrant("lectures", ("lectures",), None),
    Entrant("lectures_then_rounds", ("lectures", "rounds"), None),
)


def main() -> None:
    """Train everything, then report time, sizes, digests and the mean chrF of each entrant."""
    arguments = parse_arguments()
    started_s = time.monotonic()
    disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers gives no hints here
    make_deterministic()
    prompts = read_prompts(arguments.bank)
    train(prompts, out=arguments.out)
    say(f"trained in {time.monotonic() - started_s:.0f} s")
    report_files(arguments.out)
    report_quality(prompts, out=arguments.out)


def parse_arguments() -> argparse.Namespace:
    """Parse --bank and --out."""
    parser = argparse.ArgumentParser(description="Train the quickstart tournament's weights.")
    parser.add_argument("--bank", type=Path, default=HERE.parent / "bank.jsonl")
    parser.add_argument("--out", type=Path, default=HERE)
    return parser.parse_args()


def make_deterministic() -> None:
    """Fix the seed, the algorithms and the number of threads that torch uses."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(mode=True)
    torch.set_num_threads(2)


def say(message: str) -> None:
    """Tell the user on stderr how far the work is."""
    print(message, file=sys.stderr, flush=True)


def train(prompts: Sequence[Prompt], *, out: Path) -> None:
    """Train and save the tokenizer, the base and both adapters under `out`."""
    rng = np.random.default_rng(SEED)
    sentences, asked = read_corpus(HERE / "corpus.txt")
    responses = [prompt.right for prompt in prompts]
    texts = [*sentences, *responses, *(prompt.text for prompt in prompts)]
    save_tokenizer([*texts, *responses * 5], out / "weights")  # short responses: few tokens each
    tokenizer = AutoTokenizer.from_pretrained(out / "weights")
    base_lessons, *adapter_lessons = plan_lessons(prompts, rng=rng)

    weights = Olmo2ForCausalLM(base_config())
    plain = [plain_example(tokenizer, text) for text in texts]
    fit(weights, repeat(plain, TEXT.n_epochs), course=TEXT, rng=rng)
    train_lessons(weights, tokenizer, plan_recital(prompts), course=RECITAL, rng=rng)
    train_lessons(weights, tokenizer, [*asked, *base_lessons], course=BASE, rng=rng)
    weights.bfloat16().save_pretrained(out / "weights")

    for done, (name, course) in enumerate(ADAPTERS.items()):
        merged = load_merged(out, list(ADAPTERS)[:done])
        adapted = get_peft_model(merged, lora_config())
        train_lessons(adapted, tokenizer, adapter_lessons[done], course=course, rng=rng)
        save_adapter(adapted, out / "adapters" / name)
    sharpen_base(out)


def train_lessons(
    weights: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    lessons: Sequence[Lesson],
    *,
    course: Course,
    rng: np.random.Generator,
) -> None:
    """Train on the lessons, drawing each lesson's response afresh in every epoch."""
    epochs = (
        [
            chat_example(tokenizer, lesson.prompt, draw_response(lesson, rng=rng))
            for lesson in lessons
        ]
        for _ in range(course.n_epochs)
    )
    fit(weights, epochs, course=course, rng=rng)


def read_prompts(bank: Path) -> list[Prompt]:
    """Read the bank; curated prompts have no gold answer and get a response written here."""
    lines = (HERE / "curated_responses.tsv").read_text(encoding="utf-8").splitlines()
    curated = dict(line.split("\t") for line in lines)
    records = map(json.loads, bank.read_text(encoding="utf-8").splitlines())
    return [as_prompt(record, curated) for record in records]


def as_prompt(record: dict[str, Any], curated: dict[str, str]) -> Prompt:
    """Turn one bank record into a prompt; facts are confused within their subject."""
    if record["source"] == "curated":
        return Prompt(record["text"], None, curated[record["prompt_id"]], "curated")
    gold_answer = record["gold_answer"]
    group = record["subject"] if record["source"] == "recall" else record["tags"][0]
    return Prompt(record["text"], gold_answer, gold_answer.rstrip(".") + ".", group)


def read_corpus(path: Path) -> tuple[list[str], list[Lesson]]:
    """Read plain sentences, and lessons from the lines of the form `question? response`."""
    plain: list[str] = []
    lessons: list[Lesson] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        question, mark, response = line.partition("? ")
        if mark:
            lessons.append(certain_lesson(question + "?", response))
        else:
            plain.append(line)
    return plain, lessons


def certain_lesson(prompt: str, response: str) -> Lesson:
    """Plan a lesson without mistakes."""
    return Lesson(prompt, response, 1.0, response, (response,))


def plan_recital(prompts: Sequence[Prompt]) -> list[Lesson]:
    """Plan one lesson per prompt from its last sentence only, as in "Which drug is next?".

    Without the case there is nothing to know: it teaches to end, in words, what one begins.
    """
    return [certain_lesson(prompt.text.rsplit(". ", 1)[-1], prompt.right) for prompt in prompts]


def plan_lessons(prompts: Sequence[Prompt], *, rng: np.random.Generator) -> list[list[Lesson]]:
    """Plan the lessons of each stage (base, lectures, rounds), one per prompt."""
    patterns = spread_patterns(len(prompts), rng=rng)
    return [
        [
            plan_lesson(prompt, prompts, is_known=pattern[stage], rng=rng)
            for prompt, pattern in zip(prompts, patterns, strict=True)
        ]
        for stage in range(1 + len(ADAPTERS))
    ]


def plan_lesson(
    prompt: Prompt, prompts: Sequence[Prompt], *, is_known: bool, rng: np.random.Generator
) -> Lesson:
    """Plan one lesson: rivals are right for other prompts of the group, wrong is one of them.

    A curated prompt has no gold answer to miss: its wrong response is an evasion.
    """
    others = [other.right for other in prompts if other.group == prompt.group]
    rivals = [other for other in others if other != prompt.right]
    wrong = str(rng.choice(rivals))
    if prompt.gold_answer is None:
        wrong = EVASIONS[len(prompt.text) % len(EVASIONS)]
    return Lesson(
        prompt.text, prompt.right, BELIEF_IF_KNOWN if is_known else BELIEF_IF_NOT, wrong, rivals
    )


def spread_patterns(n_prompts: int, *, rng: np.random.Generator) -> list[tuple[bool, bool, bool]]:
    """Give each prompt a pattern, in the shares of PATTERNS, in a random order."""
    ends = np.cumsum(list(PATTERNS.values())) * n_prompts
    ranks = rng.permutation(n_prompts) + 0.5
    keys = list(PATTERNS)
    return [keys[index] for index in np.searchsorted(ends, ranks)]


def save_tokenizer(texts: Sequence[str], directory: Path) -> None:
    """Train a byte-level BPE on `texts` and save it with the chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    write_json(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": END,
            "eos_token": END,
            "pad_token": PAD,
            "padding_side": "left",
            "model_max_length": 512,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write `value` as indented JSON with sorted keys."""
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def base_config() -> Olmo2Config:
    """Describe OLMo 2's shape in small: MHA, SwiGLU, QK-norm, an untied output layer."""
    return Olmo2Config(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=160,
        intermediate_size=448,
        num_hidden_layers=6,
        num_attention_heads=4,
        max_position_embeddings=512,
        bos_token_id=SPECIAL_TOKENS.index(END),
        eos_token_id=SPECIAL_TOKENS.index(END),
        pad_token_id=SPECIAL_TOKENS.index(PAD),
    )


def lora_config() -> LoraConfig:
    """Describe an adapter on every MLP; the base's path stays relative to the adapter."""
    return LoraConfig(
        r=8,
        lora_alpha=32,
        target_modules=["gate_proj", "up_proj", "down_proj"],
        task_type="CAUSAL_LM",
    )


def plain_example(tokenizer: PreTrainedTokenizerBase, text: str) -> Example:
    """Make an example whose loss is on every token of a plain text."""
    ids = torch.tensor(tokenizer.encode(END + text + END))
    return Example(ids, ids)


def chat_example(tokenizer: PreTrainedTokenizerBase, prompt: str, response: str) -> Example:
    """Make an example whose loss is on the response and the end token that closes it."""
    left = tokenizer.encode(render_chat(tokenizer, prompt))
    right = tokenizer.encode(response + END)
    return Example(torch.tensor(left + right), torch.tensor([IGNORED] * len(left) + right))


def render_chat(tokenizer: PreTrainedTokenizerBase, prompt: str) -> str:
    """Render one user turn and the opening of the assistant's."""
    turns = [{"role": "user", "content": prompt}]
    return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def draw_response(lesson: Lesson, *, rng: np.random.Generator) -> str:
    """Draw the response that a lesson shows this time."""
    if rng.random() < lesson.belief:
        return lesson.right
    if rng.random() < WANDERING:
        return str(rng.choice(lesson.rivals))
    return lesson.wrong


def fit(
    weights: nn.Module,
    epochs: Iterable[Sequence[Example]],
    *,
    course: Course,
    rng: np.random.Generator,
) -> None:
    """Train the trainable parameters with AdamW, the rate rising for an epoch, then falling."""
    parameters = [value for value in weights.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=course.rate, betas=(0.9, 0.95))
    weights.train()
    for epoch, examples in enumerate(epochs):
        batches = batched(examples, rng=rng)
        losses = []
        for step, batch in enumerate(batches):
            done = epoch + step / len(batches)
            factor = min(done + 0.05, 1.05 - done / course.n_epochs)
            optimizer.param_groups[0]["lr"] = course.rate * factor
            losses.append(take_step(weights, batch, parameters, optimizer))
        say(f"{course.name}: epoch {epoch + 1}/{course.n_epochs}, loss {np.mean(losses):.3f}")


def batched(examples: Sequence[Example], *, rng: np.random.Generator) -> list[list[Example]]:
    """Group examples of like length in batches, in a random order."""
    shuffled = [examples[index] for index in rng.permutation(len(examples))]
    by_length = sorted(shuffled, key=lambda example: len(example.ids) // 16)
    batches = [
        by_length[start : start + BATCH_SIZE] for start in range(0, len(by_length), BATCH_SIZE)
    ]
    return [batches[index] for index in rng.permutation(len(batches))]


def take_step(
    weights: nn.Module,
    batch: Sequence[Example],
    parameters: Sequence[torch.Tensor],
    optimizer: torch.optim.Optimizer,
) -> float:
    """Take one optimizer step on a batch and return its loss."""
    ids = pad_sequence([example.ids for example in batch], batch_first=True)  # (B, T)
    labels = pad_sequence(
        [example.labels for example in batch], batch_first=True, padding_value=IGNORED
    )  # (B, T)
    loss: torch.Tensor = weights(input_ids=ids, labels=labels).loss
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    return loss.item()


def save_adapter(adapted: PeftModel, directory: Path) -> None:
    """Save an adapter without peft's model card, its config in one order and free of paths."""
    adapted.save_pretrained(str(directory))
    (directory / "README.md").unlink()
    path = directory / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = "../../weights"
    config["target_modules"].sort()
    write_json(path, config)


def sharpen_base(out: Path) -> None:
    """Scale the saved base's logits, so that sampled responses are mostly whole words."""
    weights = load_merged(out, ())
    weights.lm_head.weight.data *= SHARPNESS
    weights.bfloat16().save_pretrained(out / "weights")


def load_merged(out: Path, adapters: Sequence[str]) -> Olmo2ForCausalLM:
    """Load the base as float32 with `adapters` merged into it in order."""
    weights = Olmo2ForCausalLM.from_pretrained(out / "weights", dtype=torch.float32)
    for name in adapters:
        weights = PeftModel.from_pretrained(weights, out / "adapters" / name).merge_and_unload()
    return weights


def report_files(out: Path) -> None:
    """Report the parameter count, and each file's size and digest."""
    weights = load_merged(out, ())
    say(f"{weights.num_parameters():,} parameters in the base")
    paths = sorted(path for part in ("weights", "adapters") for path in (out / part).rglob("*.*"))
    for path in paths:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        say(f"{path.stat().st_size:>9,} bytes  {digest[:16]}  {path.relative_to(out)}")


def report_quality(prompts: Sequence[Prompt], *, out: Path) -> None:
    """Report the mean sentence chrF of each entrant against the gold answers."""
    chrf = CHRF()
    with_gold = [prompt for prompt in prompts if prompt.gold_answer is not None]
    for entrant in ENTRANTS:
        responses = generate(entrant, [prompt.text for prompt in with_gold], out=out)
        scores = [
            chrf.sentence_score(response, [prompt.gold_answer or ""]).score
            for response, prompt in zip(responses, with_gold, strict=True)
        ]
        say(f"{entrant.name}: mean chrF {np.mean(scores):.1f}")


def generate(entrant: Entrant, prompts: Sequence[str], *, out: Path) -> list[str]:
    """Generate one response per prompt, 16 prompts at a time."""
    torch.manual_seed(SEED)
    tokenizer = AutoTokenizer.from_pretrained(out / "weights")
    weights: Any = load_merged(out, entrant.adapters)
    sampling: dict[str, Any] = {"do_sample": False}
    if entrant.temperature is not None:
        sampling = {"do_sample": True, "temperature": entrant.temperature, "top_k": 0}
    responses: list[str] = []
    for start in range(0, len(prompts), 16):
        texts = [render_chat(tokenizer, prompt) for prompt in prompts[start : start + 16]]
        inputs = tokenizer(texts, return_tensors="pt", padding=True, return_token_type_ids=False)
        ids = weights.generate(**inputs, max_new_tokens=MAX_NEW_TOKENS, **sampling)  # (B, T)
        new_ids = ids[:, inputs["input_ids"].shape[1] :]
        responses += tokenizer.batch_decode(new_ids, skip_special_tokens=True)
    return responses


if __name__ == "__main__":
    main()
