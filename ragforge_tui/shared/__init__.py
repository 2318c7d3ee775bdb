"""Records, events, requests and helpers that all other packages use; imports nothing else of ours."""
