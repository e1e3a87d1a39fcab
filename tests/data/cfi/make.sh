#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How the objects beside this script were made, by Debian 12's gcc 12.2 and binutils 2.40. They are kept, since other versions make other rows.
set -e
cd "$(dirname "$0")"
LINK="-nostdlib -Wl,-z,noseparate-code,-z,max-page-size=4096,-z,norelro,--build-id=none,--eh-frame-hdr"
gcc -O2 -fomit-frame-pointer -fno-stack-protector -fcf-protection=none -fasynchronous-unwind-tables -static $LINK -o ordinary ordinary.c
gcc -static $LINK -o unusual unusual.S
gcc -static $LINK -o rare rare.S
gcc -O2 -fno-omit-frame-pointer -fno-stack-protector -fcf-protection=none -fasynchronous-unwind-tables -static $LINK -o framepointer framepointer.c
# .debug_frame only, deflated, and nothing else of DWARF.
gcc -O2 -g -fomit-frame-pointer -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables -static $LINK -o debugframe ordinary.c
objcopy --strip-unneeded --remove-section .comment ordinary
objcopy --keep-section .debug_frame --strip-debug --compress-debug-sections=zlib-gabi debugframe
objcopy --strip-unneeded --remove-section .comment unusual
objcopy --strip-unneeded --remove-section .comment rare
objcopy --strip-unneeded --remove-section .comment framepointer
