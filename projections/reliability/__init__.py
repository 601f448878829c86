"""How far judges and probabilities can be believed: agreement, kappa, calibration."""
