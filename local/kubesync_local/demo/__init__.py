"""``kubesync demo``: runs everything on this machine in one process, plays a story, and checks the result.

stack     the stand-ins of Kubernetes, DynamoDB and Route 53, and their own AWS environment
board     what has happened so far, for the screen
play      the story and the two sessions that follow it
screen    shows the board while it plays
outside   reads zone and upstream table over the wire, without kubesync's own code
expected  the expected result, written by hand from the story
verdict   compares and prints
"""
