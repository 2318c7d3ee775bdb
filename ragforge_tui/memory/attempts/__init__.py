"""What was tried before: found in the calls of turns, and said in one line before the same is tried again.

All of it is pure. `commands.py` and `edits.py` say when two commands or two edits are alike, `finder.py` finds
attempts in turns, `reminder.py` chooses the line, `contradiction.py` finds the decision that an edit contradicts.
Nothing is said where it is doubtful.
"""
