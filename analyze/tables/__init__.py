"""From events to facts: the documented tables that rules are written against."""
