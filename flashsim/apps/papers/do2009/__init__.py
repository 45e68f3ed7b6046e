"""Do and Patel, "Join Processing for Flash SSDs: Remembering Past Lessons", DaMoN 2009: its claims, and the runs that judge them."""
