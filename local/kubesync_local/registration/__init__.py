"""The rules for what people register: names, namespaces, selectors, roles. Sessions take what is registered as it is."""
