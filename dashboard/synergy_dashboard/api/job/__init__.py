"""One job: its page, and what its events say."""
