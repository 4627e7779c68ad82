"""Is it running what was asked for? Rules about flags."""
