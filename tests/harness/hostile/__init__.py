"""A namespace whose owner does whatever an API server lets through: drawn objects, and processes that show what comes of them."""
