"""Write the ledger's file safely: connection, schema, lock, place, redaction."""
