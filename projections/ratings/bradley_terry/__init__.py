"""Bradley-Terry ratings: models, fit, intervals, leaderboards, anchors and overall ratings."""
