"""The console: its pages show the results of the API's use cases, and its forms call them."""
