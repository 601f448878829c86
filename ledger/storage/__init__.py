"""Write the ledger's file safely: connection, lock, WAL, group commit."""
