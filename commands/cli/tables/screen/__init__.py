"""How results look on a terminal: columns that fit, bars, one battle."""
