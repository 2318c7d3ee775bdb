"""Earlier attempts: found in the calls of turns, and recalled in one line before the same is tried again.

All of it is pure. `commands.py` and `edits.py` decide when two commands or two edits are alike, `finder.py` finds
attempts in turns, `reminder.py` chooses the line, `contradiction.py` finds the decision that an edit contradicts.
Where it is doubtful, there is no line.
"""
