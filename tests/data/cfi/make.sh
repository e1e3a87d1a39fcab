#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How the objects beside this script were made, by Debian 12's gcc 12.2 and binutils 2.40. They are
# kept, since other versions make other rows.
set -e
cd "$(dirname "$0")"
LINK="-nostdlib -Wl,-z,noseparate-code,-z,max-page-size=4096,-z,norelro"
LINK="$LINK,--build-id=none,--eh-frame-hdr"
C="gcc -O2 -fno-stack-protector -fcf-protection=none -static $LINK"
$C -fomit-frame-pointer -fasynchronous-unwind-tables -o ordinary ordinary.c
gcc -static $LINK -o unusual unusual.S
gcc -static $LINK -o rare rare.S
$C -fno-omit-frame-pointer -fasynchronous-unwind-tables -o framepointer framepointer.c
# .debug_frame only, deflated, and nothing else of DWARF.
$C -g -fomit-frame-pointer -fno-asynchronous-unwind-tables -o debugframe ordinary.c
objcopy --strip-unneeded --remove-section .comment ordinary
objcopy --keep-section .debug_frame --strip-debug --compress-debug-sections=zlib-gabi debugframe
objcopy --strip-unneeded --remove-section .comment unusual
objcopy --strip-unneeded --remove-section .comment rare
objcopy --strip-unneeded --remove-section .comment framepointer
