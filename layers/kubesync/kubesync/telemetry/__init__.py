"""What kubesync says about itself while it runs: metrics, Events on Services."""
