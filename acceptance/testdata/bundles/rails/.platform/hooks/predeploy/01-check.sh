#!/bin/sh
set -e
test "$(get-config environment -k RAILS_ENV)" = production
cd "$(get-config platformconfig -k AppStagingDir)"
test -f config.ru
