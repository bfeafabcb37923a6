"""``kubesync demo``: everything on this machine, in one process; a story is played, and what comes of it is checked.

stack     the stand-ins of Kubernetes, DynamoDB and Route 53, and an AWS environment of their own
board     what has happened so far, for whoever shows it
play      the story and the two sessions that follow it
screen    shows the board while it plays
outside   reads zone and upstream table over the wire, without kubesync's own code
expected  what must stand there in the end, written by hand from the story
verdict   compares and prints
"""
