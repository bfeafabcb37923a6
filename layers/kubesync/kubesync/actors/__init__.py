"""The machine that runs everything: threads, locks, time and chance behind one port. It knows nothing else of kubesync."""
