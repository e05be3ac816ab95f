"""The golden record: what models predict, what audits find, and the words of every command, kept in files."""
