"""Reads what the checks need of a little-endian ELF library of 64 or 32 bits: segments, needed libraries, dynamic symbols."""

import struct

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SONAME = 1, 5, 6, 10, 14
SHT_SYMTAB, SHT_DYNSYM = 2, 11
SHN_ABS = 0xFFF1  # The name of a version of symbols.
MACHINES = {40: "armeabi-v7a", 62: "x86_64", 183: "arm64-v8a"}


class Elf:
    def __init__(self, data):
        if data[:6] not in (b"\x7fELF\x01\x01", b"\x7fELF\x02\x01"):
            raise ValueError("not a little-endian ELF file")
        self.data = data
        self.wide = data[4] == 2
        header = struct.unpack_from("<HHIQQQIHHHHHH" if self.wide else "<HHIIIIIHHHHHH", data, 16)
        self.machine = MACHINES.get(header[1], str(header[1]))
        program_offset, section_offset = header[4], header[5]
        program_count, section_count = header[9], header[11]
        # Type, flags, offset, address, physical address, bytes in the file, bytes in memory, alignment.
        self.segments = [self._segment(program_offset, i) for i in range(program_count)]
        # Name, type, flags, address, offset, size, link, info, alignment, entry size.
        section = "<IIQQQQIIQQ" if self.wide else "<10I"
        self.sections = [struct.unpack_from(section, data, section_offset + struct.calcsize(section) * i)
                         for i in range(section_count)]
        self.needed, self.soname = self._dynamic()
        self.exported, self.undefined = self._symbols()

    def load_alignments(self):
        return [segment[7] for segment in self.segments if segment[0] == PT_LOAD]

    def load_offsets_fit(self):
        """Whether each segment lies in the file where its address asks for, in pages of its alignment."""
        return all(s[2] % s[7] == s[3] % s[7] for s in self.segments if s[0] == PT_LOAD)

    def is_stripped(self):
        return all(section[1] != SHT_SYMTAB for section in self.sections)

    def _segment(self, start, index):
        if self.wide:
            return struct.unpack_from("<IIQQQQQQ", self.data, start + 56 * index)
        fields = struct.unpack_from("<8I", self.data, start + 32 * index)
        return (fields[0], fields[6], *fields[1:6], fields[7])

    def _offset(self, address):
        for segment in self.segments:
            if segment[0] == PT_LOAD and segment[3] <= address < segment[3] + segment[5]:
                return address - segment[3] + segment[2]
        raise ValueError("an address outside of the file")

    def _string(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def _dynamic(self):
        entries = []
        for segment in self.segments:
            if segment[0] == PT_DYNAMIC:
                entry = "<qQ" if self.wide else "<iI"
                for at in range(segment[2], segment[2] + segment[5], struct.calcsize(entry)):
                    entries.append(struct.unpack_from(entry, self.data, at))
        strings = self._offset(dict(entries)[DT_STRTAB])
        names = {tag: [self._string(strings + value) for t, value in entries if t == tag]
                 for tag in (DT_NEEDED, DT_SONAME)}
        return names[DT_NEEDED], (names[DT_SONAME] or [""])[0]

    def _symbols(self):
        exported, undefined = [], []
        for section in self.sections:
            if section[1] != SHT_DYNSYM:
                continue
            strings = self.sections[section[6]][4]
            symbol = "<IBBHQQ" if self.wide else "<IIIBBH"
            bytes_each = struct.calcsize(symbol)
            for at in range(section[4] + bytes_each, section[4] + section[5], bytes_each):
                fields = struct.unpack_from(symbol, self.data, at)
                name, (info, other, index) = fields[0], fields[1:4] if self.wide else fields[3:6]
                # A weak name that nobody defines is no demand.
                if index == 0 and info >> 4 == 1:
                    undefined.append(self._string(strings + name))
                elif index not in (0, SHN_ABS) and info >> 4 in (1, 2) and other & 3 in (0, 3):
                    exported.append(self._string(strings + name))
        return sorted(exported), sorted(undefined)
