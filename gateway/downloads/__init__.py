"""Files on their way through: which bytes, under which labels, from the application or from storage."""
