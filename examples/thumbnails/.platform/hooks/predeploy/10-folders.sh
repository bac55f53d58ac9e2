#!/bin/sh
# After the build and before the start: what the app finds in place. Hooks run in the bundle's
# folder with the environment of the app.
set -eu
mkdir -p "${THUMBNAILS_DIR:-out}/source"
