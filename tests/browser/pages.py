#!/usr/bin/env python3
"""Report pages in a browser: python3 pages.py MOEHUB

Makes pages with the program and looks at them in headless Chromium: no errors on the console, the
numbers of charts and tables are those of --json, the time line zooms, light and dark, a phone's
width, names for those who do not see the charts.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

PROGRAM = os.path.abspath(sys.argv.pop(1))
FLAGS = ("--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
         "--disable-background-networking --disable-component-update --disable-sync "
         "--disable-dev-shm-usage --force-color-profile=srgb")
LAYER = ["--gpus", "8", "--tokens", "1024"]


def started(folder):
    options = webdriver.ChromeOptions()
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument("--user-data-dir=" + os.path.join(folder, "profile"))
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="moehub-pages-")
        cls.browser = started(cls.folder.name)
        cls.made = {}

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def page(self, name, *arguments):
        """Made once; opened with this width and theme of the system."""
        path = os.path.join(self.folder.name, name + ".html")
        if name not in self.made:
            ran = subprocess.run([PROGRAM, *arguments, "--json", "--html", path], check=True,
                                 capture_output=True, text=True)
            self.made[name] = json.loads(ran.stdout)
        self.opened(path)
        return self.made[name]

    def opened(self, path, width=1200, dark=False):
        self.browser.get_log("browser")
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.browser.get("file://" + path)
        WebDriverWait(self.browser, 20).until(lambda browser: browser.execute_script(
            "return document.documentElement.dataset.state") == "drawn")

    def run_script(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def charts(self):
        return json.loads(self.run_script(
            "return document.getElementById('charts').textContent"))

    def option(self, number):
        """What ECharts draws."""
        return self.run_script(
            "return JSON.parse(JSON.stringify(echarts.getInstanceByDom("
            "document.getElementById('chart-' + arguments[0])).getOption()))", number)

    def expect_sound(self):
        """What holds of every page."""
        errors = [one for one in self.browser.get_log("browser")
                  if one["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(errors, [])
        for figure in self.browser.find_elements(By.CLASS_NAME, "chart"):
            self.assertEqual(figure.get_attribute("role"), "img")
            self.assertGreater(len(figure.get_attribute("aria-label")), 20)
            self.assertGreater(len(figure.find_elements(By.TAG_NAME, "canvas")), 0)
        for table in self.browser.find_elements(By.CLASS_NAME, "wide"):
            self.assertNotEqual(table.accessible_name, "")
        for select in self.browser.find_elements(By.TAG_NAME, "select"):
            self.assertNotEqual(select.accessible_name, "")
        wide = self.run_script("return [document.documentElement.scrollWidth, innerWidth]")
        self.assertLessEqual(wide[0], wide[1])

    def expect_document(self, document):
        found = json.loads(self.run_script(
            "return document.getElementById('document').textContent"))
        self.assertEqual(found, document)

    def cells(self, name):
        """A table's texts, by the beginning of what it is called."""
        return self.run_script("""
            for (const wide of document.querySelectorAll('.wide'))
              if (wide.ariaLabel.startsWith(arguments[0]))
                return [...wide.querySelector('table').rows]
                    .map(row => [...row.cells].map(cell => cell.textContent));
            return null""", name)

    def compared(self):
        return self.page("compare", "compare", *LAYER, "--systems",
                         "ideal,megatron-te,deepep,moe-hub")

    def test_are_the_numbers_those_of_the_document(self):
        document = self.compared()
        self.expect_sound()
        self.expect_document(document)
        results = document["results"]
        drawn = self.option(0)["series"]
        for series, key in zip(drawn, ["compute_us", "communication_us", "host_us"]):
            self.assertEqual(series["data"], [one[key] for one in results])
        self.assertEqual(self.option(1)["series"][0]["data"], [one["speedup"] for one in results])
        for series, key in zip(self.option(2)["series"],
                               ["up_bytes", "down_bytes", "payload_bytes"]):
            for drawn, one in zip(series["data"], results):
                self.assertTrue(math.isclose(drawn, one[key] / 1e6), (drawn, one))
        table = self.cells("Time")
        time = table[0].index("time µs")
        for row, one in zip(table[1:], results):
            self.assertEqual(row[0], one["system"])
            self.assertEqual(float(row[time].replace(",", "")), round(one["time_us"], 1))

    def test_is_traffic_from_gpu_to_gpu_a_map(self):
        document = self.compared()
        heat = next(i for i, one in enumerate(self.charts()) if one["kind"] == "heat")
        chart = self.charts()[heat]
        self.assertEqual(len(chart["rows"]), document["gpus"])
        self.assertEqual([one["name"] for one in chart["layers"]],
                         [one["system"] for one in document["results"]
                          if one["payload_bytes"] > 0])
        # What crossed between GPUs is what they sent one another.
        sent = {one["name"]: sum(one["values"]) for one in chart["layers"]}
        payload = {one["system"]: one["payload_bytes"] / 1e6
                   for one in document["results"]}
        self.assertTrue(math.isclose(sent["megatron-te"], payload["megatron-te"], rel_tol=0.02),
                        (sent, payload))
        Select(self.browser.find_element(
            By.XPATH, f"//div[@id='chart-{heat}']/..//select")).select_by_visible_text("moe-hub")
        self.assertEqual([cell[2] for cell in self.option(heat)["series"][0]["data"]],
                         chart["layers"][-1]["values"])

    def zoom(self, number):
        one = self.option(number)["dataZoom"][0]
        return one["start"], one["end"]

    def test_does_the_time_line_zoom(self):
        self.compared()
        number = next(i for i, one in enumerate(self.charts()) if one["kind"] == "timeline")
        chart = self.browser.find_element(By.ID, f"chart-{number}")
        self.run_script("arguments[0].scrollIntoView({block: 'center'})", chart)
        self.assertEqual(self.zoom(number), (0, 100))
        panel = self.option(number)["grid"][1]["top"] + 20 - chart.size["height"] // 2
        ActionChains(self.browser).scroll_from_origin(
            ScrollOrigin.from_element(chart, 0, int(panel)), 0, -240).perform()
        WebDriverWait(self.browser, 5).until(lambda _: self.zoom(number) != (0, 100))
        start, end = self.zoom(number)
        self.assertLess(end - start, 100)
        self.assertGreater(start, 0)
        figure = chart.find_element(By.XPATH, "..")
        press = lambda name: figure.find_element(By.XPATH, f".//button[.='{name}']").click()
        press("Zoom in")
        closer = self.zoom(number)
        self.assertLess(closer[1] - closer[0], end - start)
        press("Later")
        self.assertGreater(self.zoom(number)[0], closer[0])
        press("Whole")
        self.assertEqual(self.zoom(number), (0, 100))

    def test_does_the_time_line_show_the_gpu_that_is_picked(self):
        self.compared()
        number = next(i for i, one in enumerate(self.charts()) if one["kind"] == "timeline")
        chart = self.charts()[number]
        figure = self.browser.find_element(By.ID, f"chart-{number}").find_element(By.XPATH, "..")
        system, gpu = figure.find_elements(By.TAG_NAME, "select")
        Select(system).select_by_visible_text("moe-hub")
        Select(gpu).select_by_visible_text("GPU 5")
        shown = chart["systems"][-1]["gpus"][5]
        kernels = {one["name"] for one in shown["sms"] if any(one["values"])}
        self.assertGreater(len(kernels), 2)
        self.assertGreater(len(shown["units"]), 1)
        drawn = {one["name"]: one["data"] for one in self.option(number)["series"]}
        self.assertLessEqual(kernels, set(drawn))
        for one in shown["sms"]:
            if not any(one["values"]):
                continue
            points = drawn[one["name"]]
            self.assertEqual([point[1] for point in points][:len(one["values"])], one["values"])
            self.assertEqual(points[-1][0], chart["systems"][-1]["end"])
            self.assertLess(max(one["values"]), 150)
        self.expect_sound()

    def test_has_every_kernel_and_unit_of_a_time_line_its_own_colour(self):
        self.compared()
        number = next(i for i, one in enumerate(self.charts()) if one["kind"] == "timeline")
        for width in (1200, 390):
            self.opened(os.path.join(self.folder.name, "compare.html"), width=width)
            option = self.option(number)
            named = [one for one in option["series"] if one["name"] != "lanes"]
            colours = {one["name"]: one["color"] for one in named}
            self.assertEqual(len(set(colours.values())), len(colours), colours)
            self.assertEqual(set(option["legend"][0]["data"]), set(colours))
            self.assertEqual(option["legend"][0]["type"], "plain")

    def test_is_it_dark_where_the_system_is_and_when_asked(self):
        self.compared()
        path = os.path.join(self.folder.name, "compare.html")
        ground = lambda: self.run_script("return getComputedStyle(document.body).backgroundColor")
        self.assertEqual(ground(), "rgb(255, 255, 255)")
        axis = lambda: self.option(0)["yAxis"][0]["axisLabel"]["color"]
        light = axis()
        self.browser.find_element(By.ID, "theme").click()
        self.assertEqual(ground(), "rgb(21, 24, 28)")
        self.assertNotEqual(axis(), light)
        self.opened(path, dark=True)
        self.assertEqual(ground(), "rgb(21, 24, 28)")
        self.expect_sound()

    def test_does_a_phone_show_all_of_it(self):
        self.compared()
        self.opened(os.path.join(self.folder.name, "compare.html"), width=360)
        self.expect_sound()

    def test_are_other_commands_pages_sound(self):
        for name, arguments in {
                "tp": ["compare", "--layer-type", "tp", "--systems", "tp-nvls,cais",
                       "--tokens", "1024"],
                "model": ["model", *LAYER, "--systems", "megatron-te,moe-hub"],
                "served": ["model", "--decode", "--machine", "dgx-h100", "--model", "mixtral-8x7b",
                           "--context", "1000", "--batch-per-gpu", "16"],
                "sweep": ["sweep", "--sweep", "tokens=256,512,1024", "--gpus", "4", "--systems",
                          "megatron-te,moe-hub", "-o",
                          os.path.join(self.folder.name, "sweep.sqlite")],
                "explain": ["plan", "--explain", "tp=2,pp=8,ep=8"],
                "reproduce": ["reproduce", "moe-hub", "--quick", "--figure", "ablation"],
        }.items():
            with self.subTest(name):
                document = self.page(name, *arguments)
                self.expect_sound()
                self.expect_document(document)
        document = self.made["model"]
        self.page("model")
        parts = next(i for i, one in enumerate(self.charts())
                     if one["title"] == "The whole model by its parts")
        for series in self.option(parts)["series"]:
            for value, one in zip(series["data"], document["results"]):
                part = [p for p in document["parts"]
                        if p["system"] == one["system"] and p["name"] == series["name"]]
                self.assertTrue(math.isclose(value, sum(p["total_us"] for p in part) / 1e3))

    def test_are_recordings_and_placements_sound(self):
        path = os.path.join(self.folder.name, "<img src=x onerror=alert(1)>.npy")
        tokens = bytes(expert for token in range(200) for layer in range(3)
                       for expert in (token % 8, (token + 1 + layer) % 8))
        head = "{'descr': '|u1', 'fortran_order': False, 'shape': (200, 3, 2), }"
        with open(path, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n" + tokens)
        document = self.page("profile", "profile", path)
        self.expect_sound()
        self.expect_document(document)
        counts = [row for layer in document["layers"] for row in layer["counts"]]
        self.assertEqual(len(self.charts()[0]["layers"][0]["values"]), len(counts))
        self.assertEqual(self.run_script("return document.images.length"), 0)
        document = self.page("place", "place", path, "--gpus", "4", "--time-limit", "0.2")
        self.expect_sound()
        self.expect_document(document)

    def test_does_it_need_no_network(self):
        self.browser.get_log("performance")
        self.compared()
        asked = [json.loads(one["message"])["message"] for one in
                 self.browser.get_log("performance")]
        urls = [one["params"]["request"]["url"] for one in asked
                if one["method"] == "Network.requestWillBeSent"]
        self.assertTrue(all(url.startswith(("file:", "blob:", "data:")) for url in urls), urls)
        self.assertGreater(len(urls), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
