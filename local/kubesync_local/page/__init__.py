"""``kubesync ui``: a read-only page on loopback, drawn on the server, with the rights of whoever started it.

command    the command: address, token, signals
server     the HTTP server, on a socket of loopback
access     who may read: the Host header, the method, the token that works once, the cookie, headers of every answer
app        the pages and their addresses
gathering  what was read, how old it is, and who reads it: one at a time
facts      what is kept of a cluster's Services
needs      what a person has to do, the most important first
finding    search by name, address or Service
changes    the audit, filtered
lag        lag by minute, and its picture
"""
