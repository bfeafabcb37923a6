"""Upstreams as configuration of proxies: read, choose servers, render, write whole, watch."""
