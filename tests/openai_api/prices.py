"""What the fake server's model costs, as a price table has it."""

from typing import Final

from tests.openai_api.server import MODEL

PRICES: Final = f"""\
date = 2026-04-27
batch_factor = 0.5
cache_write_5m_factor = 1.25
cache_write_1h_factor = 2.0

[[models]]
id = "{MODEL}"
input = 2.0
output = 10.0
"""
