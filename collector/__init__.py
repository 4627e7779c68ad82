"""draftscope's collector: reads what engines print and publish, and keeps it."""
