#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks that no compiler makes: form, includes, linked libraries, unused names, links between pages
# and the manual pages. It checks all files of the folder but those that .gitignore names, so it
# also runs where there is no git repository.
#   tests/lint.sh TREE TOOL...
set -u
cd "$(dirname "$0")/.." || exit 1
tree=$1; shift
bad=0
fail() { echo "lint: $*"; bad=1; }
ignored=()
while IFS= read -r pattern; do
	case $pattern in
	/*) ignored+=(-o -path ".${pattern%/}") ;;
	*) ignored+=(-o -name "${pattern%/}") ;;
	esac
done <.gitignore
listed=$(find . \( -path ./.git "${ignored[@]}" \) -prune -o -type f -printf '%P\n' | sort)
# PATTERN: the project's files that match it.
files() { grep -E "$1" <<<"$listed"; }
# For each library and tool: its name, its folder, and what it may include and link.
uses=$(MAKEFLAGS= make -s uses)

# Checks of form and wording.
clang-format --dry-run -Werror $(files '\.[ch]$') || fail "form: \`make format\` mends it"
python3 tests/form.py $listed <<<"$uses" || fail "form"

# A public name begins with the noun of its header.
python3 tests/headers.py $(files '^(bpf|common|tools)/.*\.[ch]$') ||
	fail "a name that does not begin with its header's noun"

# A comment names only what exists.
python3 tests/stale.py $listed || fail "a comment with a stale name"

# Includes between folders form no circle: neither within a library or tool, nor among all.
grep -HnE '^#include "(common|tools)/' $(files '^(common|tools)/.*\.[ch]$') |
	sed -E 's,/[^/:]*:[0-9]+:#include "([^"]*)/[^/"]*".*,\t\1,' |
	sort -u | tsort >/dev/null || fail "folders include each other in a circle"

# Nor do includes between nouns. A noun is NOUN.c, NOUN.h and NOUN_internal.h, and each file without
# a header of its own that includes the latter.
grep -HE '^#include "(bpf|common|tools)/' $(files '^(bpf|common|tools)/.*\.[ch]$') |
	perl -ne '
	m{^(.*)\.[ch]:#include "(.*)\.(?:[a-z]+)"} or next;
	my ($from, $to) = ($1, $2);
	$part_of{$from} = $1 if $to =~ /(.*)_internal$/ && !-e "$from.h";
	s/_internal$// for $from, $to;
	push @edges, [$from, $to];
	END { print $part_of{$_->[0]} // $_->[0], "\t$_->[1]\n" for @edges }' |
	sort -u | tsort >/dev/null || fail "nouns include each other in a circle"

# NOUN_internal.h is for NOUN.c, and for files without a header of their own.
for use in $(grep -HoE '^#include ".*_internal\.h"' $(files '^(common|tools)/.*\.[ch]$') |
	sed 's/#include "//; s/"$//'); do
	from=${use%.[ch]:*} to=${use#*:}
	[ "$from" = "${to%_internal.h}" ] || [ ! -e "$from.h" ] ||
		fail "$from includes ${to##*/}, a header of another noun"
done

# Object files do not use each other in a circle either.
libraries=$(cd common && echo */ | tr -d /)
for lib in $libraries "$@"; do
	nm -A -g "$tree/lib/lib$lib.a" | perl -ne '
	my ($file, $kind, $name) = /:([^:]+\.o):[\da-f ]* ([A-Za-z]) (\S+)$/ or next;
	if ($kind ne "U") { $in{$name} = $file }
	else { push @edges, [$file, $name] }
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

# A tool links parts of the libraries that its module.mk names (USES), and of no other tool. Each
# library has a tool that uses it.
for lib in $libraries; do
	grep -qE "^[a-z-]+ tools/.* common/$lib( |$)" <<<"$uses" ||
		fail "common/$lib: no tool uses it"
done
for t in "$@"; do
	named=$(grep "^$t tools/" <<<"$uses")
	for lib in $(grep -oE '/lib/lib[a-z-]+\.a\(' "$tree/lib/$t.map" |
		sed 's,/lib/lib,,; s,\.a($,,' | sort -u); do
		case " $named " in
		*" tools/$lib "* | *" common/$lib "*) ;;
		*) fail "$t links parts of $lib, which its module.mk does not name" ;;
		esac
	done
done

# The users of each library. names, rows and go read files of any user of the host, so a tool with
# rights must not get them by a line of its module.mk alone.
tools="prof-bpf prof-deltas prof-dump prof-export prof-metrics prof-send prof-symd profpipe"
declare -A users=(
	[names]="prof-dump prof-symd"
	[rows]="prof-deltas prof-dump"
	[walk]="prof-bpf prof-dump"
	[go]="names rows prof-deltas prof-dump prof-symd"
	[svm]="names rows prof-deltas prof-dump prof-symd"
	[cell]="names $tools"
	[status]="names cell $tools"
	[wire]="names rows walk cell status $tools"
	[base]="names rows walk svm cell status wire $tools"
)
while read -r user _ used; do
	for lib in $used; do
		lib=${lib#common/}
		case " ${users[$lib]:-} " in
		*" $user "*) ;;
		*) fail "$user uses common/$lib, but is not in its list of users (tests/lint.sh)" ;;
		esac
	done
	for lib in "${!users[@]}"; do
		case " ${users[$lib]} " in
		*" $user "*)
			[[ " $used " == *" common/$lib "* ]] ||
				fail "$user does not use common/$lib, but is in its list of users"
			;;
		esac
	done
done <<<"$uses"

# The shared libraries that each tool may link. A privileged tool that links a parser library fails.
declare -A may=(
	[profpipe]="cjson inih"
	[prof-bpf]="seccomp bpf mbedcrypto"
	[prof-deltas]="seccomp elf z zstd Zydis Zycore"
	[prof-symd]="seccomp elf dw lzma z Zydis Zycore mbedcrypto"
	[prof-dump]="seccomp bpf elf dw lzma z zstd Zydis Zycore mbedcrypto"
	[prof-export]="seccomp protobuf-c z"
	[prof-metrics]="seccomp microhttpd"
	[prof-send]="seccomp curl crypto protobuf-c z"
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

# Each runtime has whole-tool tests and a fuzz target. If its config takes frames over, so does its
# program.
lower='s/^RUNTIME\([0-9]+, [A-Z0-9]+, ([a-z0-9]+),.*/\1/p'
for runtime in $(sed -nE "$lower" bpf/runtimes.def); do
	[ -n "$(files "^tests/e2e/test_$runtime.*\.py\$")" ] ||
		fail "tests/e2e: no test_$runtime.py tests the runtime of bpf/runtimes.def"
	[ -e "tests/fuzz/names/$runtime.c" ] || fail "tests/fuzz/names/$runtime.c does not exist"
	grep -qE 'RUNTIME_TAKES_(GENERATED|LOOP)' "common/names/runtime/$runtime"/*.c &&
		! grep -qx '#define RUNTIME_TAKES' "bpf/$runtime/$runtime.bpf.c" &&
		fail "bpf/$runtime/$runtime.bpf.c lacks RUNTIME_TAKES, but its config takes frames"
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
