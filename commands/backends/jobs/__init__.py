"""`Evaluator`: evaluations from Python, of a model in training or of a checkpoint."""
