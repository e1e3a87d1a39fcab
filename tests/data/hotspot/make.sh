#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files hotspot* of tests/fuzz/corpus/runtime of fake.c: NAME FLAGS...
set -e
cd "$(dirname "$0")"
out=../../fuzz/corpus/runtime
fake() {
	${CC:-gcc} -O2 -fPIC -shared -nostdlib -fvisibility=hidden -Wl,-z,noseparate-code \
		-Wl,--build-id=none -Wl,--hash-style=gnu -o $out/hotspot-$1 fake.c "${@:2}"
	strip $out/hotspot-$1
	chmod 644 $out/hotspot-$1
}
fake code -DFAKE_CODE
fake file
fake far -DFAKE_OFFSET=65000
fake negative -DFAKE_CODE -DFAKE_OFFSET=-20
fake too-old -DFAKE_MAJOR=7
