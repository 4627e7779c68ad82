"""Can the figures be trusted?"""
