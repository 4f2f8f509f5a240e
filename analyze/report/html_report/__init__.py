"""The report as one HTML file that needs nothing else: no network, no other file.

Scripts and styles stand in the file, and its content-security policy allows exactly these. Names
come from the trace: the template escapes every one, and scripts only ever set text.
"""
