"""Are drafts accepted as often as they should be?"""
