#!/bin/sh
# Runs a command on a machine of the test's own: it sees this one, but what a bundle changes is on file systems in
# memory that end with it. Started in a mount namespace of its own with the folder to see as /mnt.
set -e
work=$1
shift
mount --make-rprivate /
mount --bind "$work" /mnt
for dir in /opt /etc/init.d /var /tmp; do
  mount -t tmpfs -o mode=0755 tmpfs "$dir"
done
chmod 1777 /tmp
mkdir -p /var/lock/subsys /var/log /var/tmp
# What an init script finds on the machines of 2015.
cat >/etc/init.d/functions <<'FUNCTIONS'
daemon() {
  user=${1#--user=}
  shift
  runuser -u "$user" -- "$@"
}
FUNCTIONS
# A machine's services have the programs of root in their PATH; who runs the tests may not.
PATH=$PATH:/usr/sbin:/sbin
export PATH
cd /mnt
exec "$@"
