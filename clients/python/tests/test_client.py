"""Tests the client against airlock. AIRLOCK_BIN is the path of the program."""

import asyncio
import logging
import os
import signal
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional, TypedDict, Union

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from airlock_client import Airlock, AirlockClosed, AirlockError, Answer, UnsupportedHint
from airlock_client._schema import parameters

PRICES = {"apple": 0.5, "pear": 0.75}
TOTAL = """
let total = 0;
for (const item of ["apple", "pear", "apple"]) total += await host.price({ item });
return total;
"""
logging.getLogger("airlock_client").setLevel(logging.CRITICAL)


def price(item: Annotated[str, "name of an item"], count: int = 1) -> float:
    """Returns the price of an item."""
    return PRICES[item] * count


@dataclass
class Line:
    item: str
    count: int = 1


class Order(TypedDict):
    lines: list[Line]
    note: Optional[str]


async def order(order: Order, kind: Literal["gift", "plain"]) -> dict[str, float]:
    """Returns the price of each line."""
    return {line.item: price(line.item, line.count) for line in order["lines"]}


def long_text(length: int) -> str:
    return "ü" * length


class ClientTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def airlock(self, *args, **options):
        """Returns a client of an airlock with its own home."""
        env = {"HOME": self.home, "PATH": os.environ["PATH"]}
        return Airlock(program=os.environ["AIRLOCK_BIN"], args=args, env=env, **options)

    async def test_script_calls_function_in_a_loop(self):
        async with self.airlock("--allow", "host.*", tools=[price]) as airlock:
            report = await airlock.run(TOTAL)
        self.assertEqual((report.status, report.value), ("done", 1.75))
        self.assertEqual([it.tool for it in report.calls], ["host.price"] * 3)
        self.assertEqual({it.outcome for it in report.calls}, {"returned"})
        self.assertEqual(report.usage.calls, 3)

    async def test_one_approval_of_similar_calls_covers_the_loop(self):
        questions = []

        def approve(question):
            questions.append(question)
            return Answer("allow-tool", uses=3)

        async with self.airlock("--ask", "host.*", tools=[price], on_approval=approve) as airlock:
            report = await airlock.run("let n = 3; while (n--) await host.price({ item: 'apple' }); return 'done'")
        self.assertEqual((report.value, len(questions), len(report.calls)), ("done", 1, 3))

    async def test_answer_counts_for_one_question(self):
        questions = []

        async def approve(question):
            questions.append(question)
            return len(questions) == 1

        async with self.airlock("--ask", "host.*", tools=[price], on_approval=approve) as airlock:
            report = await airlock.run(TOTAL)
        self.assertEqual((report.status, report.code, len(questions)), ("failed", "refused", 2))
        self.assertEqual([it.outcome for it in report.calls], ["returned", "refused"])
        for part in ["host.price", "apple", "--ask"]:
            self.assertIn(part, questions[0].message)
        self.assertIn("refuse", questions[0].choices)

    async def test_late_answer_counts_though_the_run_was_suspended(self):
        config = Path(self.home, "airlock.toml")
        config.write_text('suspend_after = "100ms"\n[rules]\nask = ["host.*"]\n')

        async def approve(question):
            await asyncio.sleep(1)
            return True

        async with self.airlock(config=config, tools=[price], on_approval=approve) as airlock:
            report = await airlock.run("return await host.price({ item: 'pear' }) + await host.price({ item: 'apple' })")
        self.assertEqual((report.status, report.value), ("done", 1.25), report)

    async def test_calls_are_refused_without_a_yes(self):
        def fails(_):
            raise ValueError("no answer")

        called = []

        def touch() -> None:
            called.append(1)

        callbacks = [None, fails, lambda _: None, lambda _: "allow", lambda _: 1, lambda _: Answer("allow-everything")]
        for on_approval in callbacks:
            async with self.airlock("--ask", "host.*", tools=[touch], on_approval=on_approval) as airlock:
                report = await airlock.run("return await host.touch({})")
            self.assertEqual(report.status, "failed", report)
        self.assertEqual(called, [])

    async def test_rule_denies_function(self):
        async with self.airlock("--deny", "host.price", tools=[price]) as airlock:
            report = await airlock.run(TOTAL)
        self.assertEqual((report.status, report.code), ("failed", "denied"))
        self.assertIn("host.price", report.error.message)

    async def test_journal_has_calls_of_functions(self):
        async with self.airlock("--allow", "host.*", tools=[price]) as airlock:
            report = await airlock.run(TOTAL)
        listed = await asyncio.create_subprocess_exec(
            os.environ["AIRLOCK_BIN"], "runs", "show", report.run, env={"HOME": self.home}, stdout=asyncio.subprocess.PIPE
        )
        shown, _ = await listed.communicate()
        self.assertIn(b"host.price", shown)

    async def test_cancelled_task_cancels_run_and_function(self):
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        async with self.airlock("--allow", "host.*", tools=[wait, price]) as airlock:
            run = asyncio.ensure_future(airlock.run("return await host.wait({})"))
            await asyncio.wait_for(started.wait(), 30)
            run.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await run
            await asyncio.wait_for(cancelled.wait(), 30)
            self.assertEqual((await airlock.run(TOTAL)).value, 1.75)

    async def test_progress_grows(self):
        reports = []
        async with self.airlock("--allow", "host.*", tools=[price]) as airlock:
            await airlock.run(TOTAL, on_progress=reports.append)
        self.assertTrue(any("host.price" in it.message for it in reports), reports)
        numbers = [it.progress for it in reports]
        self.assertEqual(numbers, sorted(set(numbers)))

    async def test_value_of_ten_megabytes(self):
        async with self.airlock("--allow", "host.*", "--limit", "value=16MiB", tools=[long_text]) as airlock:
            report = await airlock.run("return await host.long_text({ length: 5000000 })")
            self.assertEqual((report.status, report.value == long_text(5_000_000)), ("done", True), report.error)
            spelled = "[" + "1," * 20_000 + "1]"
            report = await airlock.run("return [input, JSON.parse(input)]", input=spelled)
            self.assertEqual(report.value, [spelled, [1] * 20_001])
            # A long string that spells JSON stays a string.
            self.assertEqual((await airlock.run("return input", input=spelled)).value, spelled)

    async def test_crash_is_one_error_for_all_requests(self):
        started = asyncio.Semaphore(0)

        async def wait() -> None:
            started.release()
            await asyncio.Event().wait()

        async with self.airlock("--allow", "host.*", tools=[wait]) as airlock:
            runs = [asyncio.ensure_future(airlock.run("return await host.wait({})")) for _ in range(3)]
            for _ in runs:
                await asyncio.wait_for(started.acquire(), 30)
            os.kill(airlock._session.transport._process.pid, signal.SIGKILL)
            errors = await asyncio.wait_for(asyncio.gather(*runs, return_exceptions=True), 30)
            self.assertEqual({type(it) for it in errors}, {AirlockClosed})
            self.assertEqual({str(it) for it in errors}, {"airlock has ended (signal 9)"})
            with self.assertRaisesRegex(AirlockClosed, "signal 9"):
                await airlock.run("return 1")

    async def test_start_error_has_the_text_of_airlock(self):
        with self.assertRaisesRegex(AirlockClosed, "(?s)exit code .*no-such-file.toml"):
            async with self.airlock(config="/no-such-file.toml"):
                self.fail("it started")

    async def test_missing_program_names_the_package(self):
        with self.assertRaisesRegex(AirlockError, "pip install airlock-mcp"):
            async with Airlock(program="/no/such/airlock"):
                self.fail("it started")

    async def test_leaving_ends_process_and_pending_runs(self):
        entered = threading.Event()

        def block() -> None:
            entered.set()
            threading.Event().wait()

        async with self.airlock("--allow", "host.*", tools=[block]) as airlock:
            run = asyncio.ensure_future(airlock.run("return await host.block({})"))
            await asyncio.to_thread(entered.wait, 30)
            process = airlock._session.transport._process
            since = time.monotonic()
        self.assertIsNotNone(process.returncode)
        self.assertLess(time.monotonic() - since, 10)
        with self.assertRaisesRegex(AirlockClosed, "closed"):
            await run

    async def test_token_is_in_no_command_line_and_required(self):
        async with self.airlock("--allow", "host.*", tools=[price]) as airlock:
            server = airlock._tool_server
            command = Path(f"/proc/{airlock._session.transport._process.pid}/cmdline").read_bytes()
            self.assertIn(b"--mcp-config", command)
            self.assertNotIn(server.token.encode(), command)
            port = server._server.sockets[0].getsockname()[1]
            for headers in [{}, {"Authorization": "Bearer wrong"}]:
                request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", b"{}", headers)
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    await asyncio.to_thread(urllib.request.urlopen, request)
                self.assertEqual(refused.exception.code, 401)
                refused.exception.close()

    async def test_arguments_become_the_types_of_the_hints(self):
        async with self.airlock("--allow", "host.*", tools=[order]) as airlock:
            report = await airlock.run(
                "return await host.order({ kind: 'gift', order: { note: null, lines: [{ item: 'pear', count: 2 }] } })"
            )
            self.assertEqual(report.value, {"pear": 1.5}, report)
            wrong = await airlock.run("return await host.order({ kind: 'x', order: { note: null, lines: [] } })")
            self.assertNotEqual(wrong.status, "done")

    async def test_exception_of_a_function_is_a_tool_error(self):
        async with self.airlock("--allow", "host.*", tools=[price]) as airlock:
            report = await airlock.run("try { await host.price({ item: 'plum' }) } catch (e) { return [e.code, e.message] }")
        self.assertEqual(report.value[0], "tool-failed")
        self.assertIn("KeyError: 'plum'", report.value[1])

    async def test_url_names_an_airlock_that_runs_already(self):
        env = {"HOME": self.home, "PATH": os.environ["PATH"], "AIRLOCK_HTTP_TOKEN": "a-token-for-this-test"}
        serving = await asyncio.create_subprocess_exec(
            os.environ["AIRLOCK_BIN"], "serve", "--demo", "--ask", "demo.*", "--http", "127.0.0.1:0",
            env=env, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            line = ""
            while "http://" not in line:
                line = (await asyncio.wait_for(serving.stderr.readline(), 30)).decode()
                self.assertTrue(line, "it ended")
            url = "http://" + line.split("http://")[1].split()[0].rstrip(".,;")
            questions, asked_again = [], asyncio.Event()

            async def approve(question):
                questions.append(question)
                if len(questions) > 1:
                    asked_again.set()
                    await asyncio.Event().wait()
                return True

            async with Airlock(url=url, token="a-token-for-this-test", on_approval=approve) as airlock:
                reports = []
                report = await airlock.run("return (await demo.logs_services()).services.length", on_progress=reports.append)
                self.assertEqual((report.value, len(questions)), (5, 1), report)
                self.assertTrue(reports)
                with self.assertRaisesRegex(AirlockError, "401"):
                    async with Airlock(url=url, token="wrong"):
                        self.fail("it connected")
                run = asyncio.ensure_future(airlock.run("return await demo.logs_services()"))
                await asyncio.wait_for(asked_again.wait(), 30)
                serving.kill()
                await serving.wait()
                with self.assertRaises(AirlockClosed):
                    await asyncio.wait_for(run, 30)
        finally:
            if serving.returncode is None:
                serving.kill()
            await serving.wait()
        with self.assertRaisesRegex(AirlockClosed, "no connection"):
            async with Airlock(url=url, token="a-token-for-this-test"):
                self.fail("it connected")

    def test_url_and_tools_are_an_error(self):
        with self.assertRaisesRegex(AirlockError, "have no effect"):
            Airlock(url="http://127.0.0.1:1/mcp", tools=[price])


class SchemaTest(unittest.TestCase):
    def check(self, hint, expected):
        def function(value):
            pass

        function.__annotations__ = {"value": hint}
        schema, _ = parameters(function)
        self.assertEqual(schema["properties"]["value"], expected)

    def test_schema_of_hint(self):
        line = {
            "type": "object",
            "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["item"],
            "additionalProperties": False,
        }
        note = {"anyOf": [{"type": "string"}, {"type": "null"}]}
        for hint, expected in [
            (int, {"type": "integer"}),
            (float, {"type": "number"}),
            (str, {"type": "string"}),
            (bool, {"type": "boolean"}),
            (None, {"type": "null"}),
            (list, {"type": "array"}),
            (list[int], {"type": "array", "items": {"type": "integer"}}),
            (dict, {"type": "object"}),
            (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
            (Optional[str], note),
            (Union[str, None], note),
            (str | None, note),
            (Literal["a", 1], {"enum": ["a", 1]}),
            (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
            (Line, line),
            (
                Order,
                {
                    "type": "object",
                    "properties": {"lines": {"type": "array", "items": line}, "note": note},
                    "required": ["lines", "note"],
                    "additionalProperties": False,
                },
            ),
        ]:
            with self.subTest(hint=hint):
                self.check(hint, expected)

    def test_unsupported_hint_is_an_error(self):
        def without(value):
            pass

        with self.assertRaisesRegex(UnsupportedHint, "`value` of `without` has no type hint"):
            Airlock(tools=[without])
        for hint, part in [(set, "`set`"), (dict[int, str], "only text as keys"), (bytes, "`bytes`")]:
            with self.subTest(hint=hint), self.assertRaisesRegex(UnsupportedHint, part):
                self.check(hint, {})


if __name__ == "__main__":
    unittest.main()
