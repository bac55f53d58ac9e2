#!/bin/sh
# After the app is ready.
set -eu
echo "the gallery is at http://127.0.0.1:${PORT:-5000}/"
