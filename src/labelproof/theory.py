"""The paper's lemma, theorems and bounds as functions."""
