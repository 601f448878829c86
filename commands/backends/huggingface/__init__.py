"""Generate, read and judge with local weights, on one GPU or several."""
