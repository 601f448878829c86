"""`tourney apply`, `run` and `demo`: what touches models; `tourney plan` says it beforehand."""
