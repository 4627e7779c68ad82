"""Pages: functions from diagnosed runs to what templates show, and the templates' environment."""
