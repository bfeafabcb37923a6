"""DNS: names, annotations, and the record sets that a Service leads to."""
