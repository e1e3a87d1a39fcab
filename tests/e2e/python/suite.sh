#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks packages of a Debian suite, with what they depend on, into a directory, from which they
# run by chroot:
#   suite.sh SUITE DIRECTORY PACKAGES ONLY
# PACKAGES is a regular expression of the names wanted. ONLY is another: of these packages and of
# what they depend on, those that are unpacked.
# The mirror is that of the system's own sources, and apt's state a private one: nothing is
# installed, and no script of a package runs.
set -eu
suite=$1 root=$2 packages=$3 only=$4 state=$2.apt
trap 'rm -rf "$state"' EXIT

die() {
	echo "suite.sh: $suite: $*" >&2
	exit 1
}

apt() {
	tool=$1
	shift
	"$tool" -q -o Dir::Etc::sourcelist="$state/sources" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State="$state" -o Dir::State::Lists="$state/lists" \
		-o Dir::State::status="$state/status" -o Dir::Cache="$state" \
		-o Dir::Cache::archives="$state/archives" -o Dir::Cache::pkgcache= \
		-o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root \
		-o APT::Install-Recommends=false -o Acquire::Retries=2 "$@"
}

mkdir -p "$state/lists/partial" "$state/archives/partial" "$root/old" "$root/usr/bin" \
	"$root/usr/lib" "$root/usr/lib64"
# The links that base-files has in a suite with /usr merged.
for d in bin lib lib64; do ln -s usr/$d "$root/$d"; done
: >"$state/status"
mirror=$(sed -nE 's,^(deb [^#]*|URIs: *)(https?://[^ ]*/debian)/?( .*)?$,\2,p' \
	/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
	2>/dev/null | head -n 1)
[ -n "$mirror" ] || die "the system's own sources name no mirror of Debian"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keyring target=Packages] $mirror $suite main" >"$state/sources"

apt apt-get -o APT::Update::Error-Mode=any update >"$state/log" 2>&1 ||
	die "the archive cannot be read: $(grep -m 1 -E '^(E|Err)' "$state/log")"
apt apt-cache pkgnames | grep -Ex "$packages" >"$state/wanted" || die "has none of $packages"
# shellcheck disable=SC2046
apt apt-get install -y --print-uris $(cat "$state/wanted") >"$state/log" 2>&1 ||
	die "$(grep -m 1 '^E' "$state/log")"
sed -nE "s/^'[^']*' ([^ _]*)_.*/\1/p" "$state/log" | grep -Ex "$only" >"$state/wanted" ||
	die "$packages depends on none of $only"
# shellcheck disable=SC2046
(cd "$state/archives" && apt apt-get download $(cat "$state/wanted")) >"$state/log" 2>&1 ||
	die "$(grep -m 1 -E '^(E|Err)' "$state/log")"
for deb in "$state"/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink \
		--no-same-owner --exclude=./usr/share/doc --exclude=./usr/share/man
done
