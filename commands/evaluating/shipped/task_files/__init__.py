"""Read task files of lm-evaluation-harness as evaluations."""
