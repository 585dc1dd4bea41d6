"""Which test holds each rule of the language? ``rules/`` says it; ``python -m tests.conformance`` runs them and writes the page."""
