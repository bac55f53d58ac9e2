"""Checks documents against the API's schema of one release, and refuses fields that it does not know.

Usage: kubernetes.py RELEASE, with a JSON list of documents on standard input.
"""

import json
import sys

import kubernetes_validate

for document in json.load(sys.stdin):
    kubernetes_validate.validate(document, sys.argv[1], strict=True)
