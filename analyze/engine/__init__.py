"""From facts to findings: rule files, their language, and their evaluation on a trace."""
