"""Plan experiments before anybody is assigned: simulate the live experiment on guesses, and say what each way costs."""
