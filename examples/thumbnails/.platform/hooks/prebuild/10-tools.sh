#!/bin/sh
# Before the build: what it needs must be there. A hook that fails ends the deployment, and what ran
# before goes on.
set -eu
command -v go >/dev/null || { echo "go is not in the PATH: https://go.dev/doc/install" >&2; exit 1; }
