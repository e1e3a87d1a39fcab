#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs from Debian, by name, the packages that building profpipe takes and that are missing.
# With `test`: also what its tests and benches need; with `deb`: also what `make deb` needs.
# Prints what it installs, asks nothing, and does nothing if all is there.
set -eu

build="gcc make pkgconf clang llvm bpftool libbpf-dev libelf-dev libdw-dev libnng-dev
libmsgpack-dev libprotobuf-c-dev protobuf-c-compiler python3-minimal libcap-ng-dev
libseccomp-dev libcjson-dev libinih-dev libmicrohttpd-dev libcurl4-openssl-dev uthash-dev
libssl-dev libiberty-dev liblzma-dev zlib1g-dev libzstd-dev libzydis-dev libmbedtls-dev
libjs-d3 linux-libc-dev"
deb="debhelper dpkg-dev"
test="git g++ squashfuse squashfs-tools xfsprogs python3 python3-pytest python3-pytest-xdist
libcriterion-dev libclang-rt-14-dev clang-format elfutils gdb binutils protobuf-compiler mandoc
bash dash perl gzip xz-utils openssl sqlite3 gawk bc tar grep findutils coreutils procps util-linux
libcap2-bin libc6-dbg musl-tools chromium
postgresql linux-perf dwz mercurial gunicorn python3-flask
libpython3-dev python3-greenlet qemu-system-x86 busybox-static debian-archive-keyring systemd
podman runc python3-yaml python3-protobuf python3-grpcio python3-h2"
# Compilers and runtimes that may also come from elsewhere: command=package.
commands="go=golang-go rustc=rustc node=nodejs npm=npm
javac=default-jdk-headless mcs=mono-mcs mono=mono-runtime pypy3=pypy3 erlc=erlang-base ruby=ruby
php=php-cli luajit=luajit sbcl=sbcl
guile=guile-3.0 poly=polyml"

wanted=$build
[ "${1:-}" = test ] && wanted="$build $test"
missing=
[ "${1:-}" != deb ] || wanted="$build $deb"
[ "${1:-}" != test ] || for c in $commands; do
	command -v "${c%%=*}" >/dev/null || missing="$missing ${c#*=}"
done
for p in $wanted; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null) || state=
	[ "$state" = installed ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
echo "installing from Debian:$missing"
if [ "$(id -u)" != 0 ]; then
	echo "deps.sh: cannot install packages as uid $(id -u): run as root, or install them" \
		"yourself" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# shellcheck disable=SC2086
apt-get -qq -y --no-install-recommends install $missing >/dev/null
