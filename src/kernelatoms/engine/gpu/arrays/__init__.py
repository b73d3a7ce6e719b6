"""``DeviceArray``, numpy functions on tensors, conversion, and what all other folders build on."""
