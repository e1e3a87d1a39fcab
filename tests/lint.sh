#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks that no compiler makes: form, includes, linked libraries, unused names, links between pages
# and the manual pages. Files that git does not know yet are also checked.
#   tests/lint.sh TREE TOOL...
set -u
cd "$(dirname "$0")/.." || exit 1
tree=$1; shift
bad=0
fail() { echo "lint: $*"; bad=1; }
listed=$(git ls-files --cached --others --exclude-standard | sort -u |
	while IFS= read -r f; do [ ! -e "$f" ] || echo "$f"; done)
# PATTERN: the project's files that match it.
files() { grep -E "$1" <<<"$listed"; }

# Checks of form and wording.
clang-format --dry-run -Werror $(files '\.[ch]$') || fail "form: \`make format\` mends it"
MAKEFLAGS= make -s uses | python3 tests/form.py $listed || fail "form"

# A public name begins with the noun of its header.
python3 tests/headers.py $(files '^(common|tools)/.*\.[ch]$') ||
	fail "a name that does not begin with its header's noun"

# Includes between folders form no circle: neither within a library or tool, nor among all.
git grep --untracked -nE '^#include "(common|tools)/' -- 'common/*.[ch]' 'tools/*.[ch]' |
	sed -E 's,/[^/:]*:[0-9]+:#include "([^"]*)/[^/"]*".*,\t\1,' |
	sort -u | tsort >/dev/null || fail "folders include each other in a circle"

# Nor do includes between nouns. A noun is NOUN.c, NOUN.h and NOUN_internal.h, and each file without
# a header of its own that includes the latter.
git grep --untracked -E '^#include "(bpf|common|tools)/' -- \
	'bpf/*.[ch]' 'common/*.[ch]' 'tools/*.[ch]' |
	perl -ne '
	m{^(.*)\.[ch]:#include "(.*)\.(?:[a-z]+)"} or next;
	my ($from, $to) = ($1, $2);
	$part_of{$from} = $1 if $to =~ /(.*)_internal$/ && !-e "$from.h";
	s/_internal$// for $from, $to;
	push @edges, [$from, $to];
	END { print $part_of{$_->[0]} // $_->[0], "\t$_->[1]\n" for @edges }' |
	sort -u | tsort >/dev/null || fail "nouns include each other in a circle"

# Nor do object files. The exception: the registry of runtimes and each runtime use each other.
libraries=$(cd common && echo */ | tr -d /)
for lib in $libraries "$@"; do
	nm -A -g "$tree/lib/lib$lib.a" | perl -ne '
	my ($file, $kind, $name) = /:([^:]+\.o):[\da-f ]* ([A-Za-z]) (\S+)$/ or next;
	if ($kind ne "U") { $in{$name} = $file }
	elsif ("$file $name" !~ /^runtime\.o \w+_runtime$/) { push @edges, [$file, $name] }
	END { print map { my $to = $in{$_->[1]}; $to ? "$_->[0]\t$to\n" : () } @edges }' |
		sort -u | tsort >/dev/null || fail "object files of $lib use each other in a circle"
done

# No function of a library is defined again elsewhere: the linker would take either.
again=$(for lib in $libraries "$@"; do
	nm -g --defined-only "$tree/lib/lib$lib.a" |
		awk -v from="$lib" 'NF == 3 { print $3, from }' | sort -u
done | awk -v libs=" $libraries " '
	$1 in of { print $1 " of " of[$1] " and " $2 }
	index(libs, " " $2 " ") { of[$1] = $2 }')
[ -z "$again" ] || fail "defined twice: $again"

# The tools that may link each library.
declare -A linkers=(
	[base]="$*"
	[wire]="$*"
	[cell]="$*"
	[status]="profpipe prof-bpf prof-export"
	[walk]="prof-bpf prof-dump"
	[rows]="prof-deltas prof-dump"
	[names]="prof-symd prof-dump"
	[go]="prof-deltas prof-symd prof-dump"
)
for lib in $libraries; do
	[ -n "${linkers[$lib]:-}" ] || fail "common/$lib: no tool may link it"
done
for t in "$@"; do
	for lib in $(grep -oE '/lib/lib[a-z-]+\.a\(' "$tree/lib/$t.map" |
		sed 's,/lib/lib,,; s,\.a($,,' | sort -u); do
		if [ -d "tools/$lib" ]; then
			[ "$lib" = "$t" ] || fail "$t links parts of $lib"
			continue
		fi
		case " ${linkers[$lib]:-} " in
		*" $t "*) ;;
		*) fail "$t links parts of common/$lib" ;;
		esac
	done
done

# The shared libraries that each tool may link. A privileged tool that links a parser library fails.
declare -A may=(
	[profpipe]="cjson inih"
	[prof-bpf]="seccomp bpf z mbedcrypto"
	[prof-deltas]="seccomp elf z zstd Zydis Zycore"
	[prof-symd]="seccomp elf dw lzma z Zydis Zycore mbedcrypto"
	[prof-dump]="seccomp bpf elf dw lzma z zstd Zydis Zycore mbedcrypto"
	[prof-export]="seccomp protobuf-c z"
	[prof-metrics]="seccomp microhttpd"
	[prof-send]="seccomp curl protobuf-c z"
)
for t in "$@"; do
	for lib in $(readelf -d "$tree/$t" | sed -n 's/.*(NEEDED).*\[\(.*\)\.so.*/\1/p'); do
		case " libc libnng libmsgpackc libcap-ng ld-linux-x86-64 ${may[$t]:-} " in
		*" $lib "* | *" ${lib#lib} "*) ;;
		*) fail "$t links $lib, which is not in its list" ;;
		esac
	done
done

# A fuzz target needs inputs to replay, and a line in the list of readers of foreign bytes.
targets=$(files '^tests/fuzz/.*/.*\.c$' | sed 's,.*/,,; s,\.c$,,' | sort -u)
corpora=$(files '^tests/fuzz/corpus/' | cut -d/ -f4 | sort -u)
told=$(sed -n 's/^- `\([a-z0-9_]*\)`: .*/\1/p' tests/fuzz/README.md | sort -u)
for what in corpora told; do
	differ=$(comm -3 <(echo "$targets") <(echo "${!what}") | tr -d '\t' | tr '\n' ' ')
	[ -z "$differ" ] || fail "tests/fuzz: targets and $what differ: $differ"
done

# The target of a link from a page to a file of the tree exists.
for page in $(files '\.md$'); do
	for link in $(grep -oE '\]\([^)#:]+[)#]' "$page" | sed 's/^..//; s/.$//'); do
		[ -e "$(dirname "$page")/$link" ] ||
			fail "$page: links to $link, which does not exist"
	done
done

# Each reason of bpf/errors.def is in the manual.
reasons='s/^(WALK|LOST)_REASON\([0-9]+, [A-Z_]+, "([a-z-]+)".*/\2/p'
for word in $(sed -nE "$reasons" bpf/errors.def); do
	[ "$word" = complete ] || grep -qx "\.It $word" docs/prof-bpf.1 ||
		fail "docs/prof-bpf.1: lacks the reason $word"
done

mandoc -T lint -W warning docs/*.1 || fail "manual pages"
for page in docs/*.1; do
	mandoc -T ascii "$page" | col -b | grep -n "''" && fail "$page: quotes in quotes"
done

python3 tests/unused.py $(files '\.(c|h|def|mk)$|(^|/)Makefile$') || fail "what nobody uses"
[ $bad -eq 0 ] && echo "lint: nothing found"
exit $bad
