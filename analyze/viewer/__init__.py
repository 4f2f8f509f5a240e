"""Show a trace in the Perfetto viewer: the link, and the server that the viewer reads from."""
