#!/bin/sh
# A version that Python cannot read never takes the place of one that works.
set -eu
exec python3 -c 'import ast; ast.parse(open("application.py", encoding="utf-8").read())'
