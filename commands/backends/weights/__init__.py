"""Load weights, merge LoRA, decode, sample and compute log-likelihoods."""
