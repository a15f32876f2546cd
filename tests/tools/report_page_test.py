#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows the report of a run in a browser without network, on a light and on a dark page. Skipped (exit status 77)
without Chromium.

usage: report_page_test.py PROGRAM
"""
import html.parser
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PROGRAM = None
CHROMIUM = shutil.which("chromium")
CONFIG = """[model]
dim = 16
[train]
epochs = 3
batch_size = 32
[placement]
policy = "adaptive"
bytes_min = 0
[run]
device = "host"
threads = 1
ranks = 4
report_every = 2
"""
LIGHT, DARK = (255, 255, 255), (15, 19, 24)  # --page in trainer/report/report.cpp


class Plots(html.parser.HTMLParser):
    """Counts what each section of a page shows."""

    def __init__(self):
        super().__init__()
        self.section, self.plots, self.shapes, self.table_rows = None, {}, {}, {}
        self.tags, self.urls = set(), []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        values = dict(attributes)
        self.urls += [value for name, value in attributes if name in ("src", "href", "xlink:href", "action", "data")]
        if tag == "section":
            self.section = values["id"]
            for counts in (self.plots, self.shapes, self.table_rows):
                counts[self.section] = 0
        if self.section is None:
            return
        self.plots[self.section] += tag == "svg"
        self.table_rows[self.section] += tag == "tr"
        if tag == "rect":
            self.shapes[self.section] += float(values["width"]) > 0.1 and float(values["height"]) > 0.1
        if tag == "polyline":
            heights = {point.split(",")[1] for point in values["points"].split()}
            self.shapes[self.section] += len(heights) > 1


def pixels(path):
    """Returns the rows of an 8-bit PNG as lists of (red, green, blue)."""
    data = path.read_bytes()
    width, height, bits, kind = struct.unpack(">IIBB", data[16:26])
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and bits == 8 and kind in (2, 6)
    channels, packed, at = {2: 3, 6: 4}[kind], b"", 8
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        packed += data[at + 8:at + 8 + size] if data[at + 4:at + 8] == b"IDAT" else b""
        at += size + 12
    raw, stride, rows = zlib.decompress(packed), width * channels, []
    before = bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        line = bytearray(raw[start + 1:start + 1 + stride])
        for i in range(stride):
            left = line[i - channels] if i >= channels else 0
            corner = before[i - channels] if i >= channels else 0
            line[i] = (line[i] + predicted(raw[start], left, before[i], corner)) & 255
        rows.append([tuple(line[i:i + 3]) for i in range(0, stride, channels)])
        before = line
    return rows


def predicted(method, left, above, corner):
    """Returns the prediction of a byte by a PNG filter."""
    if method == 4:
        estimate = left + above - corner
        return min((left, above, corner), key=lambda byte: abs(estimate - byte))
    return (0, left, above, (left + above) // 2)[method]


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.held.name)
        facts = [f"e{s}\tby{r}\te{(s + r) % 60}\n" for s in range(60) for r in (1, 7, 20)]
        (cls.folder / "train.txt").write_text("".join(facts[10:]))
        (cls.folder / "valid.txt").write_text("".join(facts[:5]))
        (cls.folder / "test.txt").write_text("".join(facts[5:10]))
        (cls.folder / "small.toml").write_text(CONFIG)
        cls.run_it("train", "small.toml", "--run", "a&b")
        done = cls.run_it("report", "a&b")
        cls.page = cls.folder / done.stdout.strip()

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    @classmethod
    def run_it(cls, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=cls.folder, text=True, check=True, capture_output=True)

    def browse(self, *options):
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()
        done = subprocess.run(
            [CHROMIUM, "--headless=new", *root, "--disable-gpu", "--disable-background-networking", "--no-first-run",
             "--hide-scrollbars", "--host-resolver-rules=MAP * 0.0.0.0", f"--user-data-dir={self.folder / 'browser'}",
             *options, self.page.as_uri()], capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def screenshot(self, name, *options):
        path = self.folder / name
        self.browse(f"--screenshot={path}", "--window-size=1060,900", *options)
        return pixels(path)

    def test_sections_show_data_and_need_no_network(self):
        dom = self.browse("--dump-dom")
        shown = Plots()
        shown.feed(dom)
        for section in ("loss", "bytes", "homes", "owners", "pairs", "speed"):
            self.assertGreater(shown.plots[section], 0, section)
            self.assertGreater(shown.shapes[section], 0, section)
        self.assertEqual(shown.table_rows["hot"], 21)  # the rows and their heading
        self.assertEqual(shown.urls, [])
        self.assertFalse(shown.tags & {"script", "link", "img", "iframe", "object", "embed"})
        without_names = dom.replace('xmlns="http://www.w3.org/2000/svg"', "")
        self.assertIsNone(re.search(r"https?:|url\(|@import", without_names))
        self.assertIn("<h1>Run a&amp;b</h1>", dom)

    def test_page_follows_the_theme(self):
        for name, page, options in (("light.png", LIGHT, ()), ("dark.png", DARK, ("--force-dark-mode",))):
            rows = self.screenshot(name, *options)
            self.assertEqual(rows[0][0], page, name)
            everywhere = [pixel for row in rows[::3] for pixel in row[::3]]
            drawn = sum(pixel != page for pixel in everywhere) / len(everywhere)
            self.assertTrue(.05 < drawn < .95, f"{name}: {drawn:.2f} of the page is not background")
            self.assertGreater(len(set(everywhere)), 50, name)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if CHROMIUM is None:
        print("there is no chromium (nothing can show the page): install chromium")
        sys.exit(77)
    unittest.main()
