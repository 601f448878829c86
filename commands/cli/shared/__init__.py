"""What commands share: options, the terminal, which ledger and which tournament."""
