#!/usr/bin/env python3
"""Make printable.inc, the table behind pyrepr_printable: run with Python 3.11, whose Unicode version it takes.

    python3.11 worker/stats/printable.py > worker/stats/printable.inc

The table lists, ascending, each code point from which str.isprintable() gives another answer than for the code point
before it. U+0000 is not printable, so a code point is printable when an odd number of entries lies at or below it.
"""
import sys
import unicodedata


def main():
    answers = [chr(point).isprintable() for point in range(sys.maxunicode + 1)]
    turns = [point for point in range(1, len(answers)) if answers[point] != answers[point - 1]]
    print("/* Made by printable.py, Unicode %s, %d entries. */" % (unicodedata.unidata_version, len(turns)))
    line = ""
    for turn in turns:
        item = "0x%x," % turn
        if len(line) + 1 + len(item) > 100:
            print(line)
            line = ""
        line += (" " if line else "") + item
    print(line)


main()
