# SPDX-License-Identifier: Apache-2.0
"""A FUSE file system of files f0, f1, ... that a user mounted: only the first page of each is ever
served, and reads of all others are never answered.

    mutefs.py FOLDER UID      mounts it, and serves until it is killed
"""
import ctypes
import errno
import os
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = 25, 26, 27, 29, 36, 38, 42
ROOT, FIRST = 1, 2
SIZE = 1 << 20
FOR_EVER = 3600
ENDLESS = b"\xeb\xfe"  # jumps to itself


def attr(node, uid):
    folder = node == ROOT
    mode = (stat.S_IFDIR if folder else stat.S_IFREG) | 0o755
    return struct.pack("<6Q10I", node, 0 if folder else SIZE, 0, 0, 0, 0, 0, 0, 0, mode, 1, uid,
                       uid, 0, 4096, 0)


def serve(fd, uid):
    while True:
        request = os.read(fd, 1 << 20)
        opcode, unique, node = struct.unpack_from("<4xIQQ", request)
        body, data, error = request[40:], b"", 0
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        if opcode == INIT:
            # Without FUSE_ASYNC_READ the reader waits in the kernel, where nothing ends it.
            data = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 12, 9, 65536, 1, 0, 0, 0)
        elif opcode == LOOKUP and body[:1] == b"f" and body.rstrip(b"\0")[1:].isdigit():
            file = FIRST + int(body.rstrip(b"\0")[1:])
            data = struct.pack("<QQQQII", file, 0, FOR_EVER, FOR_EVER, 0, 0) + attr(file, uid)
        elif opcode == LOOKUP:
            error = errno.ENOENT
        elif opcode == GETATTR:
            data = struct.pack("<QII", FOR_EVER, 0, 0) + attr(node, uid)
        elif opcode in (OPEN, OPENDIR):
            data = struct.pack("<QII", 1, 0, 0)
        elif opcode == READ:
            offset, size = struct.unpack_from("<8xQI", body)
            if offset or size > 4096:
                continue
            data = b"\177ELF\2\1\1".ljust(64, b"\1") + ENDLESS.ljust(4032, b"\1")
        elif opcode == STATFS:
            continue
        elif opcode not in (FLUSH, RELEASE, RELEASEDIR, DESTROY):
            error = errno.ENOSYS
        try:
            os.write(fd, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
        except OSError as e:
            if e.errno != errno.ENOENT:  # who asked has gone
                raise


if __name__ == "__main__":
    where, owner = sys.argv[1], int(sys.argv[2])
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id={owner},group_id={owner}"
    if libc.mount(b"mute", os.fsencode(where), b"fuse", 6, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    print("mounted", flush=True)
    serve(device, owner)
