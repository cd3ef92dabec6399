"""A second reader of captures, written from docs/format.md alone.

capture_reader.py FILE FOLDER: checks the file and writes each column's values, little-endian,
to FOLDER/table.column.  zstd and XXH3 come from the libraries, through ctypes.
"""

import ctypes
import struct
import sys

zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_decompress.restype = ctypes.c_size_t
zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t] * 2
xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def checksum(data):
    return xxhash.XXH3_64bits(data, len(data))


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def name(self):
        size = self.take("B")
        self.at += size
        return self.data[self.at - size : self.at].decode("ascii")


def decode(segment, encoding, rows, width):
    size = rows * width
    if encoding & 4:
        out = ctypes.create_string_buffer(size)
        assert zstd.ZSTD_decompress(out, size, segment, len(segment)) == size
        segment = out.raw
    assert len(segment) == size
    if encoding & 2:
        planes = [segment[b * rows : (b + 1) * rows] for b in range(width)]
        segment = b"".join(bytes(row) for row in zip(*planes))
    values = list(struct.unpack("<%d%s" % (rows, CODES[width]), segment))
    if encoding & 1:
        for i in range(1, rows):
            values[i] = (values[i] + values[i - 1]) % 2 ** (8 * width)
    return values


def read_column(cursor, data, rows):
    name, ref = cursor.name(), cursor.name()
    width, unit, flags, zero, blocks = cursor.take("BBBBI")
    values, shape = [], []
    for _ in range(blocks):
        offset, size, count, summed, encoding, zero = cursor.take("QIIQII")
        segment = data[offset : offset + size]
        assert offset % 64 == 0 and checksum(segment) == summed and zero == 0
        values += decode(segment, encoding, count, width)
        shape.append(count)
    assert len(values) == rows
    return name, width, values, shape


def main(path, folder):
    data = open(path, "rb").read()
    header = struct.unpack_from("<8sHHIQQQQQQ", data)
    magic, major, _, header_size, features, size, at, directory_size, summed, own = header
    assert magic == b"\x89USPROF\n" and major == 1 and features == 0 and header_size == 64
    assert size == len(data) and at + directory_size == size and at % 64 == 0
    assert checksum(data[:56]) == own and checksum(data[at:]) == summed
    cursor = Cursor(data[at:])
    for _ in range(cursor.take("I")):
        table = cursor.name()
        rows, columns = cursor.take("QI")
        shapes = []
        for _ in range(columns):
            name, width, values, shape = read_column(cursor, data, rows)
            shapes.append(shape)
            with open("%s/%s.%s" % (folder, table, name), "wb") as out:
                out.write(struct.pack("<%d%s" % (rows, CODES[width]), *values))
        assert all(shape == shapes[0] for shape in shapes)
    assert cursor.at == directory_size


main(sys.argv[1], sys.argv[2])
