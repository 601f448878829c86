"""What it means: pure folds over events, and the mathematics on their results."""
