"""Ask judges and entrants in batches: plan, send, look for, receive; no batch is paid for twice."""
