"""Model-free recall as pure functions: text analysis, lexical and dense scores, context, rules."""
