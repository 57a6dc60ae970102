"""The methods clients may call: one module per namespace, imported when first called."""
