"""Findings with a life: recognised when a turn is stored, closed and replaced by later turns, then sent no more.

`marked` recognises what a turn marks as decision, wish, open point or fact; `closing` what it closes or replaces;
`keeper` stores both; `acts` is what the user does with them; `settled` tells which lines repeat something that no
longer holds. `marks.toml` holds the words.
"""
