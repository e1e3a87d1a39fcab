#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks that no compiler makes: form, which file may include and which program link what, what
# nobody uses, and the manual pages. New files count, whether git knows them or not.
#   tests/lint.sh TREE TOOL...
set -u
cd "$(dirname "$0")/.." || exit 1
tree=$1; shift
bad=0
fail() { echo "lint: $*"; bad=1; }
files() {
	git ls-files --cached --others --exclude-standard -- "$@" | sort -u |
		while IFS= read -r f; do [ ! -e "$f" ] || echo "$f"; done
}

# Kernel style as far as a machine can say it.
sources=$(files '*.c' '*.h' '*.def' '*.py' '*.sh' '*.js' '*.css' '*.mk' Makefile)
grep -nE '[[:blank:]]+$' $sources && fail "blanks at the end of a line"
clang-format --dry-run -Werror $(files '*.c' '*.h') || fail "form: \`make format\` mends it"
for f in $sources; do [ -z "$(tail -c 1 "$f")" ] || fail "$f: no line feed at its end"; done
# 100 columns, where a tab goes to the next multiple of 8. Exempt are recorded and given bytes (test
# data, corpora, the licence), and an address that alone takes most of a line.
given='^(LICENSE$|tests/data/python/[0-9.]+\.txt$|tests/fuzz/corpus/)'
files | grep -vE "$given" | xargs -d '\n' grep -Il '' | xargs -d '\n' perl -CSD -ne '
	chomp;
	1 while s/\t/" " x (8 - $-[0] % 8)/e;
	print "$ARGV:$.: ", length, " columns\n" and $bad = 1 if length > 100 && !m{://\S{60}};
	close ARGV if eof;
	END { $? ||= $bad }' || fail "lines of more than 100 columns"
for f in $(files '*.c' '*.h'); do
	head -n 1 "$f" | grep -q 'SPDX-License-Identifier' ||
		fail "$f: names no licence in its first line"
done
grep -nIE '\b(TODO|FIXME|XXX|HACK)\b' $(files | grep -vE "^tests/(lint.sh$|fuzz/corpus/)") &&
	fail "something is left undone"
grep -nE '\b(sprintf|strcat|alloca|gets|system|popen)\(' \
	$(files 'common/*.c' 'tools/*.c' 'bpf/*.c') && fail "a forbidden function"

# Plain English, as far as a machine can say it: "also" in place of a trailing "too", and no user is
# a he.
prose=$(files '*.c' '*.h' '*.def' '*.py' '*.sh' '*.js' '*.mk' '*.md' '*.1' Makefile \
	packaging debian | grep -vE '^tests/(lint\.sh$|fuzz/corpus/|data/)')
grep -nIE ', too[.;:,)]' $prose && fail "a trailing \"too\": write \"also\""
grep -nIwiE 'he|him|his' $prose && fail "a user is no he: write \"it\" or \"their\""

# An include guard is the file's path, so that no two are alike. runtime.bpf.h is a template.
for f in $(files '*.h' ':!bpf/programs/runtime.bpf.h'); do
	guard=$(sed 's,^tools/,,' <<<"$f" | tr a-z A-Z | tr -c 'A-Z0-9\n' _)
	grep -q "^#ifndef $guard$" "$f" || fail "$f: its include guard is not $guard"
done

# A name says which header it is from.
python3 tests/headers.py $(files 'common/*.[ch]' 'tools/*.[ch]') ||
	fail "a name that does not begin with its header's noun"

# Each of our headers is named by its whole path, so that the checks below see it.
grep -nE '^[[:blank:]]*#[[:blank:]]*include' $(files 'bpf/*.[ch]' 'common/*.[ch]' 'tools/*.[ch]') |
	grep -vE ':#include ("(bpf|common|tools)/[a-z]|"[a-z]+(\.skel|_walk)\.h"|<)' &&
	fail "an include that does not begin with bpf/, common/ or tools/"
grep -nE '#include (<(common|tools|tests)/|"[^"]*\.\.)' \
	$(files 'bpf/*.[ch]' 'common/*.[ch]' 'tools/*.[ch]') &&
	fail "a header of ours is included as \"its/whole/path.h\""

# Includes: bpf uses nothing, a library those that its module.mk names, a tool itself
# and the libraries that it names.
grep -nE '#include "(common|tools)/' $(files 'bpf/*.[ch]') &&
	fail "bpf includes nothing from common and tools"
while read -r name folder uses; do
	grep -noE '#include "(common/[a-z]+|tools/[a-z-]+)/' $(files "$folder/*.[ch]") \
		>/tmp/lint.$$
	while IFS=: read -r file line include; do
		include=${include#*\"}; include=${include%/}
		case " $folder $uses " in
		*" $include "*) ;;
		*) fail "$file:$line: $name may not include $include" ;;
		esac
	done </tmp/lint.$$
done < <(MAKEFLAGS= make -s uses)
rm -f /tmp/lint.$$

# Folders stand on each other: no circle among those of a library, of a tool, or of all.
git grep --untracked -nE '^#include "(common|tools)/' -- 'common/*.[ch]' 'tools/*.[ch]' |
	sed -E 's,/[^/:]*:[0-9]+:#include "([^"]*)/[^/"]*".*,\t\1,' |
	sort -u | tsort >/dev/null || fail "folders include each other in a circle"

# So do nouns. A noun is NOUN.c, NOUN.h and NOUN_internal.h, and each file without a header of its
# own that includes the latter.
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

# So do object files. The registry of runtimes is the exception: it and each of them use each other.
libraries=$(cd common && echo */ | tr -d /)
for lib in $libraries "$@"; do
	nm -A -g "$tree/lib/lib$lib.a" | perl -ne '
	my ($file, $kind, $name) = /:([^:]+\.o):[\da-f ]* ([A-Za-z]) (\S+)$/ or next;
	if ($kind ne "U") { $in{$name} = $file }
	elsif ("$file $name" !~ /^runtime\.o \w+_runtime$/) { push @edges, [$file, $name] }
	END { print map { my $to = $in{$_->[1]}; $to ? "$_->[0]\t$to\n" : () } @edges }' |
		sort -u | tsort >/dev/null || fail "object files of $lib use each other in a circle"
done

# No tool and no other library defines a function of a library again: the linker would take either.
again=$(for lib in $libraries "$@"; do
	nm -g --defined-only "$tree/lib/lib$lib.a" |
		awk -v from="$lib" 'NF == 3 { print $3, from }' | sort -u
done | awk -v libs=" $libraries " '
	$1 in of { print $1 " of " of[$1] " and " $2 }
	index(libs, " " $2 " ") { of[$1] = $2 }')
[ -z "$again" ] || fail "defined twice: $again"

# Which tools may link a library.
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

# The libraries that each binary may link. A privileged tool that grows a parser library fails here.
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
targets=$(files 'tests/fuzz/*/*.c')
for f in $targets; do
	noun=$(basename "$f" .c)
	[ -n "$(files "tests/fuzz/corpus/$noun/")" ] ||
		fail "$f: has no corpus in tests/fuzz/corpus/$noun"
	grep -q "^- \`$noun\`: " tests/fuzz/README.md ||
		fail "$f: is not in the list of tests/fuzz/README.md"
done
for noun in $(sed -n 's/^- `\([a-z_]*\)`: .*/\1/p' tests/fuzz/README.md) \
	$(files tests/fuzz/corpus | cut -d/ -f4 | sort -u); do
	grep -q "/$noun\.c$" <<<"$targets" || fail "tests/fuzz: $noun is no target"
done

# A link from one page to another file of the tree.
for page in $(files '*.md'); do
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

python3 tests/unused.py $(files '*.c' '*.h' '*.def' '*.mk' Makefile) || fail "what nobody uses"
[ $bad -eq 0 ] && echo "lint: nothing found"
exit $bad
