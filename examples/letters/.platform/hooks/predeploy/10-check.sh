#!/bin/sh
# Before the start: a version that Node cannot read never takes the place of one that works.
set -eu
exec node --check server.js
