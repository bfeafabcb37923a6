"""Commands that only read: ``status``, ``records``, ``upstreams``, ``errors``, ``audit`` and ``explain``."""
