#!/bin/sh
# The first process of a fresh machine, in namespaces of its own: makes a folder the root of everything, mounts what a
# machine has, and runs a command as a user. All that it mounts and starts ends with it.
# first_process.sh ROOT USER COMMAND...
set -eu
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
cd "$root"
for folder in "$root".mounts/*; do
  [ ! -d "$folder" ] || mount --bind "$folder" "$root/mnt/${folder##*/}"
done
mount -t proc -o nosuid,nodev,noexec proc proc
mount -t sysfs -o nosuid,nodev,noexec,ro sysfs sys
mount -t tmpfs -o nosuid,mode=755 tmpfs dev
for device in null zero full random urandom tty; do
  : >"dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o nosuid,noexec,newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for number in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${number%:*}" "dev/${number#*:}"; done
# Not chroot, which a kernel refuses to combine with user namespaces.
mkdir -p .old
pivot_root . .old
cd /
umount -l /.old
# Not exec: the first process buries whatever is orphaned.
setpriv --reuid="$user" --regid="$user" --init-groups "$@"
