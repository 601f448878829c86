"""The address of a bank on the Hub: what it chooses, and what is wrong with it."""

from pathlib import Path

import pytest
from pydantic_core import PydanticCustomError

from commands.errors import ConfigurationError
from commands.settings.hub_dataset import HubDataset, hub_dataset
from commands.settings.reader import read_settings
from tests.support.builders.commands import MINIMAL


def test_an_address_says_revision_split_and_columns() -> None:
    """Percent signs stand for what an address cannot hold, as a blank in a column's name."""
    address = "hf://datasets/org/set@refs%2Fpr%2F1?config=main&split=test&text=Best+Q&gold_answer="

    assert hub_dataset(address) == HubDataset(
        address, "org/set", "refs/pr/1", "main", "test", {"text": "Best Q", "gold_answer": ""}
    )
    assert hub_dataset("hf://datasets/set") == HubDataset("hf://datasets/set", "set")
    assert hub_dataset("data/bank.jsonl") is None


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("hf://org/set", "is written hf://datasets/org/name"),
        ("hf://datasets/org/set/test.parquet", "is written hf://datasets/org/name"),
        ("hf://datasets/org/set?spilt=test", "unknown key 'spilt'; did you mean 'split'"),
        ("hf://datasets/org/set?split=a&split=b", "has a key twice"),
    ],
)
def test_a_wrong_address_is_refused(address: str, why: str, tmp_path: Path) -> None:
    """With its line, as every setting."""
    with pytest.raises(PydanticCustomError, match=why):
        hub_dataset(address)

    config = tmp_path / "tournament.toml"
    config.write_text(f'[prompts]\nbank = "{address}"\n{MINIMAL}')
    with pytest.raises(ConfigurationError, match=f"toml:2: 'prompts.bank' is .*{why}"):
        read_settings(config, {})
