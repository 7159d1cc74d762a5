"""The comment on a pull request, in words: headline, causes, tables and folds; annotations have the same words."""
