#!/bin/sh
# Runs a command as on a machine: on a copy of this one's files that is kept in memory and ends with it, without the
# marks by which a container is recognised. Started in a mount namespace of its own with a folder for the layers, the
# folders to share with this machine, "--", and the command, which runs in the first of these folders.
set -e
PATH=$PATH:/usr/sbin:/sbin # chroot is for root
export PATH
layers=$1
shift
into=$1
mount --make-rprivate /
mount -t tmpfs tmpfs "$layers"
root=$layers/root
mkdir "$layers/upper" "$layers/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$layers/upper,workdir=$layers/work" "$root"
for shared in /proc /dev /sys; do
  mount --rbind "$shared" "$root$shared"
done
while [ "$1" != -- ]; do
  mkdir -p "$root$1"
  mount --bind "$1" "$root$1"
  shift
done
shift
rm -f "$root/.dockerenv" "$root/run/.containerenv" "$root/run/systemd/container"
mount --bind /dev/null "$root/proc/1/cgroup"
unset KUBERNETES_SERVICE_HOST ECS_CONTAINER_METADATA_URI_V4 ECS_CONTAINER_METADATA_URI container
exec chroot "$root" sh -c 'cd "$0" && exec "$@"' "$into" "$@"
