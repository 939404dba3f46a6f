"""Everyday faults: small models of many architectures, healthy pairs of them, and faulty ones."""
