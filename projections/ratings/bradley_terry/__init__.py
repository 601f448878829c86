"""Bradley-Terry ratings, with intervals, ranks and anchors."""
