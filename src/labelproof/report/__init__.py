"""Figures, tables and pages from records and audits."""
