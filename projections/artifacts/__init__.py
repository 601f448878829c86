"""The files of a run: results, ratings, verdicts and the report, in stable formats."""
