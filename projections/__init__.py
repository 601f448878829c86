"""What it means: pure folds over events and pure mathematics on what they yield."""
