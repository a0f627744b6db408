"""The console's pages: each shows what a use case of the public contract answers, and sends forms to one."""
