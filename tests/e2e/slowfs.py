# SPDX-License-Identifier: Apache-2.0
"""A FUSE file system with one file, `prog`. It answers a FLUSH from processes of one name late, so
that a process that closes the file waits in the kernel.

    slowfs.py FOLDER FILE NAME SECONDS    mounts FILE as FOLDER/prog, serves it until unmounted
"""
import ctypes
import errno
import os
import stat
import struct
import sys
import threading
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = 25, 26, 27, 29, 36, 38, 42
ROOT, FILE = 1, 2
FOR_EVER = 3600


class SlowFs:
    def __init__(self, folder, path, name, seconds):
        with open(path, "rb") as f:
            self.content = f.read()
        self.name, self.seconds = name, seconds
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        options = (f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other,"
                   f"default_permissions")
        if libc.mount(b"slow", os.fsencode(folder), b"fuse.slow", 0, options.encode()):
            raise OSError(ctypes.get_errno(), "mount")

    def attr(self, node):
        folder = node == ROOT
        size = 0 if folder else len(self.content)
        mode = (stat.S_IFDIR if folder else stat.S_IFREG) | 0o755
        return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0,
                           0, 0, 4096, 0)

    def reply(self, unique, data=b"", error=0):
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
        except OSError as e:
            if e.errno != errno.ENOENT:  # who asked has gone
                raise

    def answer(self, opcode, unique, node, pid, body):
        if opcode == INIT:
            self.reply(unique,
                       struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0))
        elif opcode == LOOKUP:
            if body.rstrip(b"\0") == b"prog":
                self.reply(unique,
                           struct.pack("<QQQQII", FILE, 0, FOR_EVER, FOR_EVER, 0, 0)
                           + self.attr(FILE))
            else:
                self.reply(unique, error=errno.ENOENT)
        elif opcode == GETATTR:
            self.reply(unique, struct.pack("<QII", FOR_EVER, 0, 0) + self.attr(node))
        elif opcode in (OPEN, OPENDIR):
            self.reply(unique, struct.pack("<QII", 1, 0, 0))
        elif opcode == READ:
            offset, size = struct.unpack_from("<8xQI", body)
            self.reply(unique, self.content[offset:offset + size])
        elif opcode == STATFS:
            self.reply(unique, bytes(80))
        elif opcode == FLUSH:
            with open(f"/proc/{pid}/comm") as f:
                late = f.read().strip() == self.name
            if late:
                threading.Thread(target=lambda: (time.sleep(self.seconds), self.reply(unique)),
                                 daemon=True).start()
            else:
                self.reply(unique)
        elif opcode in (RELEASE, RELEASEDIR, DESTROY):
            self.reply(unique)
        elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
            self.reply(unique, error=errno.ENOSYS)

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError as e:
                if e.errno == errno.ENODEV:  # unmounted
                    return
                raise
            opcode, unique, node, _uid, _gid, pid = struct.unpack_from("<4xIQQIII", request)
            self.answer(opcode, unique, node, pid, request[40:])


if __name__ == "__main__":
    served = SlowFs(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
    print("mounted", flush=True)
    served.serve()
