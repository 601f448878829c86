"""What a judge is asked, how its reply is parsed, and how verdicts become outcomes."""
