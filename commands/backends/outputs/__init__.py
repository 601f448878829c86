"""What backends write for other programs: Parquet files, and metrics of a training."""
