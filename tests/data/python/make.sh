#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files of tests/fuzz/corpus/runtime of fake.c: NAME VERSION STATE FLAGS...
set -e
cd "$(dirname "$0")"
out=../../fuzz/corpus/runtime
mkdir -p $out
fake() {
	${CC:-gcc} -Os -fPIC -shared -nostdlib -fvisibility=hidden -Wl,-z,noseparate-code \
		-Wl,--build-id=none -Wl,--hash-style=gnu \
		-DFAKE_VERSION=$2 -DFAKE_STATE=$3 -o $out/$1 fake.c "${@:4}"
	strip $out/$1
}
fake key-alone 6 1
fake key 9 2
fake key-symbolic 10 2 -Wl,-Bsymbolic
fake key-of-libc 11 3
fake key-no-plt 12 3 -fno-plt
fake key-behind 12 4
CC=clang fake key-clang 12 2 -O2
fake key-plain 9 2 -O0
fake key-plain-behind 9 4 -O0
fake key-plain-asked 13 6 -O0
fake tls-plain 15 5 -O0
fake key-offsets 13 2
fake key-offsets-14 14 2
fake tls-global 15 5 -DFAKE_EXPORTED
fake tls-local 15 5
fake tls-initial 15 5 -ftls-model=initial-exec
fake tls-descriptor 15 5 -mtls-dialect=gnu2
fake tails 14 2 -DFAKE_TAILS
fake too-new 99 2
fake free-threaded 14 2 -DFAKE_FREE_THREADED=1
fake free-threaded-15 15 5 -DFAKE_FREE_THREADED=1
fake free-threaded-13 13 2 -DFAKE_FREE_THREADED=1
gcc -Os -fno-pic -no-pie -static -nostdlib -Wl,-z,noseparate-code -Wl,--build-id=none \
	-Wl,-e,_PyEval_EvalFrameDefault \
	-DFAKE_STATIC -DFAKE_VERSION=11 -DFAKE_STATE=3 -o $out/key-static fake.c
# Programs whose symbols are gone.
hidden() {
	gcc -Os -fPIE -pie -nostdlib -Wl,-z,noseparate-code -Wl,--build-id=none \
		-Wl,-e,_PyEval_EvalFrameDefault -DFAKE_VERSION=$2 \
		-DFAKE_STATE=$3 -DFAKE_HIDDEN=$4 -o $out/$1 fake.c "${@:5}" -lc
	strip $out/$1
}
hidden hidden 9 2 1
hidden hidden-11 11 2 1 -DFAKE_ARGCOUNT=56
hidden hidden-14 14 2 1
hidden hidden-15 15 5 1
hidden hidden-tails 14 2 1 -DFAKE_TAILS
hidden hidden-no-pie 10 2 1 -fno-pic -no-pie
hidden hidden-static 11 2 1 -fno-pic -no-pie -static -DFAKE_STATIC -DFAKE_ARGCOUNT=56
hidden hidden-bare 11 2 1 -fno-pic -no-pie -static -DFAKE_STATIC -DFAKE_ARGCOUNT=56 \
	-Wl,--no-eh-frame-hdr
hidden hidden-cold 11 2 1 -O2 -DFAKE_COLD -DFAKE_ARGCOUNT=56
hidden hidden-no-table 9 2 2
hidden hidden-two-keys 9 2 3
hidden hidden-other-layout 9 2 1 -DFAKE_ARGCOUNT=20
# Pythons that are not read.
other() {
	gcc -Os -nostdlib -fvisibility=hidden -Wl,-z,noseparate-code -Wl,--build-id=none \
		-Wl,--hash-style=gnu -o $out/$1 other.c "${@:2}"
	strip $out/$1
}
other old -fPIC -shared -DOTHER_FUNCTION=PyEval_EvalFrameEx '-DOTHER_TEXT="lib/python2.7\0002.7.9"'
other pypy -fPIC -shared -DOTHER_FUNCTION=pypy_execute_source \
	'-DOTHER_TEXT="3.9.16 (feeb267, Jan 1 2024)\n[PyPy 7.3.11 with GCC 12.2.0]"'
other micropython -static '-DOTHER_TEXT="MicroPython v1.19.1 on 2022-10-05"'
other no-symbols -static \
	'-DOTHER_TEXT="<frozen importlib._bootstrap>\000.cpython-39-x86_64-linux-gnu.so\0003.9.18"'
