"""draftscope's dashboard: command line, web pages, API, exporter and alerts."""
