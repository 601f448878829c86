"""Read a data set of the Hugging Face Hub, or of its cache, with the package datasets."""

import sys
from collections.abc import Iterator
from typing import Final

import datasets
from datasets.packaged_modules.cache.cache import Cache

from commands.backends.huggingface.hub import HTTP_ERROR
from commands.backends.remote.bodies import first_line
from commands.errors import ConfigurationError
from commands.importing.formats.rows import Record, Sheet
from commands.settings.hub_dataset import HubDataset

_BATCH: Final = 100  # rows that are in memory at once: some have images, which are left encoded
_CAUSES: Final = (OSError, ValueError, datasets.exceptions.DatasetsError, HTTP_ERROR)


def open_dataset(wanted: HubDataset) -> Sheet:
    """Return the rows of a split; of one that the Hub does not give, those of the cache.

    Raises:
        ConfigurationError: There is no such data set, configuration or split, or neither the Hub
            nor the cache has it; or it has several and the address chooses none.
    """
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        builder = datasets.load_dataset_builder(
            wanted.name, wanted.config, revision=wanted.revision
        )
        _require_revision(wanted, builder)
        builder.download_and_prepare()
        found = builder.as_dataset(split=wanted.split)
    except _CAUSES as error:
        why = f"{first_line(error)}; check the address, and the connection to the Hub"
        raise ConfigurationError([f"{wanted.address}: {why}"]) from error
    if isinstance(found, dict):  # of splits
        if len(found) > 1:
            fault = f"it has the splits {', '.join(found)}; choose one, as ?split={[*found][-1]}"
            raise ConfigurationError([f"{wanted.address}: {fault}"])
        (found,) = found.values()
    return Sheet(found.column_names, _rows(found))


def _require_revision(wanted: HubDataset, builder: datasets.DatasetBuilder) -> None:
    """Refuse what the cache has of another revision, which the package takes without a word.

    Raises:
        ConfigurationError: Nobody can say that it is the revision that is wanted.
    """
    if isinstance(builder, Cache) and wanted.revision not in {None, builder.hash}:
        why = f"the Hub does not answer, and the cache here has commit {builder.hash}"
        raise ConfigurationError([f"{wanted.address}: {why}; connect, or name that commit"])


def _rows(dataset: datasets.Dataset) -> Iterator[Record]:
    batches = dataset.with_format("arrow").iter(_BATCH)
    rows = (row for batch in batches for row in batch.to_pylist())
    yield from (Record(number, row) for number, row in enumerate(rows, start=1))
