#!/bin/sh
# When settings change and the app does not, confighooks run in the place of hooks.
set -eu
echo "letters are from ${LETTERS_FROM:-nobody} now"
