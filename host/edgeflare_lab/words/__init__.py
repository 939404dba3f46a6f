"""What the lab's servers say, in words: functions and tables that take a code and give a sentence."""
